// The data of the page, and its state.

const [checks, isMerged] = (({ merged, ...data }) => [joinChecks(data), merged])(
  JSON.parse(document.getElementById('data').textContent),
);
const byId = new Map(checks.map((check) => [check.id, check]));
const configs = [...new Set(checks.map((check) => check.evaluator.config))];
const evaluators = [...new Set(checks.map((check) => check.evaluator.name))];
let state = readHash(location.hash);
let ordered = [];
let orderedBy = '';

/** Apply the value of a control, and write the state to the address. */
function change(changes) {
  state = { ...state, page: 1, ...changes };
  show();
  clearTimeout(change.later);
  change.later = setTimeout(() => history.replaceState(null, '', writeHash(state)), 300);
}

/** The checks that match the search and the filters, sorted. */
function currentChecks() {
  const by = `${state.sort} ${state.down}`;
  if (by !== orderedBy) [ordered, orderedBy] = [sortChecks(checks, state), by];
  return filterChecks(ordered, state);
}

/** The address of a check. */
function addressOf(check) {
  return writeHash({ ...state, check: check.id });
}
