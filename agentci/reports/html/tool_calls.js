// Expected and actual tool calls side by side, as in `summary.md`, with single arguments.

const MAX_CALLS = 200;

/**
 * The turns of `details.comparisons`; null for items without the shape that the trajectory metric
 * writes, since a program may put any value there.
 */
function comparedTurns(details) {
  const found = details?.comparisons;
  return Array.isArray(found) ? found.map(comparedTurn) : [];
}

function comparedTurn(item) {
  const expected = readCalls(item?.expected);
  const actual = readCalls(item?.actual);
  if (typeof item?.matched !== 'boolean' || !expected || !actual) return null;
  return {
    matched: item.matched,
    rows: markedRows(pairCalls(expected.slice(0, MAX_CALLS), actual.slice(0, MAX_CALLS))),
    hidden: Math.max(0, Math.max(expected.length, actual.length) - MAX_CALLS),
  };
}

function readCalls(found) {
  if (!Array.isArray(found) || found.some((call) => typeof call?.name !== 'string')) return null;
  return found.map((call) => ({
    name: call.name,
    args: call.args ?? null,
    key: canonical(call.args ?? null),
  }));
}

/** JSON with sorted keys, so that equal values are equal text. */
function canonical(value) {
  if (Array.isArray(value)) return `[${value.map(canonical).join(',')}]`;
  if (!isObject(value)) return JSON.stringify(value);
  const members = Object.keys(value)
    .sort()
    .map((key) => `${JSON.stringify(key)}:${canonical(value[key])}`);
  return `{${members.join(',')}}`;
}

function isObject(value) {
  return value !== null && typeof value === 'object' && !Array.isArray(value);
}

/** Pair the calls of both sides in order, to maximise the total similarity. */
function pairCalls(expected, actual) {
  const best = scorePairings(expected, actual);
  const pairs = [];
  let i = 0;
  let j = 0;
  while (i < expected.length && j < actual.length) {
    const score = similarity(expected[i], actual[j]);
    if (score && best[i][j] === score + best[i + 1][j + 1]) {
      pairs.push([expected[i++], actual[j++]]);
    } else if (best[i + 1][j] >= best[i][j + 1]) {
      pairs.push([expected[i++], null]);
    } else {
      pairs.push([null, actual[j++]]);
    }
  }
  for (; i < expected.length; i++) pairs.push([expected[i], null]);
  for (; j < actual.length; j++) pairs.push([null, actual[j]]);
  return pairs;
}

// The best total similarity of the calls from (i, j) on: a weighted longest common subsequence.
function scorePairings(expected, actual) {
  const best = Array.from({ length: expected.length + 1 }, () =>
    new Array(actual.length + 1).fill(0),
  );
  for (let i = expected.length - 1; i >= 0; i--) {
    for (let j = actual.length - 1; j >= 0; j--) {
      const score = similarity(expected[i], actual[j]);
      const paired = score ? score + best[i + 1][j + 1] : 0;
      best[i][j] = Math.max(paired, best[i + 1][j], best[i][j + 1]);
    }
  }
  return best;
}

function similarity(expected, actual) {
  if (expected.name !== actual.name) return 0;
  return expected.key === actual.key ? 3 : 1;
}

function same(one, other) {
  return one.name === other.name && one.key === other.key;
}

function markedRows(pairs) {
  const missing = pairs.filter(([, actual]) => !actual).map(([expected]) => expected);
  const unexpected = pairs.filter(([expected]) => !expected).map(([, actual]) => actual);
  return pairs.map(([expected, actual]) => ({
    mark: markOf(expected, actual, missing, unexpected),
    expected,
    actual,
    arguments: comparedArguments(expected, actual),
  }));
}

function markOf(expected, actual, missing, unexpected) {
  if (expected && actual) return same(expected, actual) ? '' : 'differs';
  if (expected) return unexpected.some((call) => same(call, expected)) ? 'moved' : 'missing';
  return missing.some((call) => same(call, actual)) ? 'moved' : 'unexpected';
}

/** The arguments of a pair as JSON, by name; null where a side lacks an argument. */
function comparedArguments(expected, actual) {
  const [expectedArgs, actualArgs] = [named(expected?.args), named(actual?.args)];
  return [...new Set([...expectedArgs.keys(), ...actualArgs.keys()])].map((name) => {
    const [left, right] = [expectedArgs.get(name), actualArgs.get(name)];
    return {
      name,
      expected: left === undefined ? null : JSON.stringify(left),
      actual: right === undefined ? null : JSON.stringify(right),
      differs:
        !expected || !actual
          ? false
          : left === undefined || right === undefined || canonical(left) !== canonical(right),
    };
  });
}

/** Arguments by name; a value that is not an object has the name "". */
function named(args) {
  if (args === null || args === undefined) return new Map();
  return isObject(args) ? new Map(Object.entries(args)) : new Map([['', args]]);
}
