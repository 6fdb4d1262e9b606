// The data of the page, its state, and the contents of cases, which are read when they are needed.

const DATA = JSON.parse(document.getElementById('data').textContent);
const { cases: CASES, columns: COLUMNS } = joinCases({ evaluators: [], ...DATA });
const CONFIGS = [...new Set(CASES.flatMap((each) => each.checks.map((check) => check.evaluator.config)))];
const HAS_BASELINE = CASES.some((each) => each.state);
// Of each cause, the case that represents it in all reports comes first.
const byRank = ({ rank: a = 0 }, { rank: b = 0 }) => a - b;
const CLUSTERS = Map.groupBy(
  CASES.filter((each) => each.cluster !== undefined).sort(byRank),
  (each) => each.cluster,
);
const blocks = new Map();

let here = readHash(location.hash);
let shownCases = [];
// The addresses of the list of the overview, and of the list that a case was opened from.
let listHash = '#/';
let backHash = '#/';

function caseNamed(wanted) {
  return CASES.find(({ name }) => name === wanted);
}

/** The recorded run of a case, its trace, and the findings of its checks. */
function contentOf({ block }) {
  if (!block) return { run: {}, checks: [] };
  const [number, index] = block;
  if (!blocks.has(number))
    blocks.set(number, JSON.parse(document.getElementById(`cases-${number}`).textContent));
  return blocks.get(number)[index];
}

/** The address of a case, and of one of its checks; what is undefined is left out. */
function caseHash(each, check, params = {}) {
  return writeHash(`/case/${encodeURIComponent(each.name)}`, { check: check?.evaluator.name, ...params });
}

/** Cases of the same state that fail for the same reasons, itself included. */
function alike(each) {
  return CLUSTERS.get(each.cluster)?.filter(hasState(each.state)) ?? [each];
}

function go(hash) {
  if (location.hash === hash) show();
  else location.hash = hash;
}

/** Add the answers to what the search looks at, one block at a time while the page is idle. */
function readAnswers(onDone) {
  const waiting = CASES.filter((each) => each.answers === undefined);
  const later = window.requestIdleCallback ?? ((work) => setTimeout(work, 1));
  const step = () => {
    const until = performance.now() + 12;
    while (waiting.length && performance.now() < until) {
      const each = waiting.pop();
      const turns = contentOf(each).run.turns ?? [];
      const texts = turns.flatMap((turn) => [turn.user, turn.answer ?? '', turn.expected_answer ?? '']);
      each.answers = texts.join('\n').toLowerCase();
    }
    if (waiting.length) later(step);
    else onDone();
  };
  later(step);
}
