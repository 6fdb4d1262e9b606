// What the page is about, and what of it is shown.

const [checks, elsewhere] = (({ elsewhere, ...data }) => [joinChecks(data), elsewhere])(
  JSON.parse(document.getElementById('data').textContent),
);
const byId = new Map(checks.map((check) => [check.id, check]));
const configs = [...new Set(checks.map((check) => check.evaluator.config))];
const evaluators = [...new Set(checks.map((check) => check.evaluator.name))];
let state = readHash(location.hash);
let ordered = [];
let orderedBy = '';

/** Take what a control says, and leave an address that leads here again. */
function change(changes) {
  state = { ...state, page: 1, ...changes };
  show();
  clearTimeout(change.later);
  change.later = setTimeout(() => history.replaceState(null, '', writeHash(state)), 300);
}

/** The checks that are searched for, in their order. */
function currentChecks() {
  const by = `${state.sort} ${state.down}`;
  if (by !== orderedBy) [ordered, orderedBy] = [sortChecks(checks, state), by];
  return filterChecks(ordered, state);
}

/** Where one of them is shown. */
function addressOf(check) {
  return writeHash({ ...state, check: check.id });
}
