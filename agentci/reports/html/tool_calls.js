// Expected and actual tool calls side by side: what `summary.md` shows, with arguments one by one.

const MAX_CALLS = 200;

/**
 * The turns of `details.comparisons`, null for what has not the shape that the trajectory metric
 * gives; any program may put anything there.
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

/** JSON in which equal values are equal text, whatever the order of their keys. */
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

/** Both sides in their order, so paired that most calls stand beside their like. */
function pairCalls(expected, actual) {
  const worth = worths(expected, actual);
  const pairs = [];
  let i = 0;
  let j = 0;
  while (i < expected.length && j < actual.length) {
    const alike = likeness(expected[i], actual[j]);
    if (alike && worth[i][j] === alike + worth[i + 1][j + 1]) {
      pairs.push([expected[i++], actual[j++]]);
    } else if (worth[i + 1][j] >= worth[i][j + 1]) {
      pairs.push([expected[i++], null]);
    } else {
      pairs.push([null, actual[j++]]);
    }
  }
  for (; i < expected.length; i++) pairs.push([expected[i], null]);
  for (; j < actual.length; j++) pairs.push([null, actual[j]]);
  return pairs;
}

// Of the best pairing of what is left from (i, j): a longest common subsequence, weighted.
function worths(expected, actual) {
  const worth = Array.from({ length: expected.length + 1 }, () =>
    new Array(actual.length + 1).fill(0),
  );
  for (let i = expected.length - 1; i >= 0; i--) {
    for (let j = actual.length - 1; j >= 0; j--) {
      const alike = likeness(expected[i], actual[j]);
      const paired = alike ? alike + worth[i + 1][j + 1] : 0;
      worth[i][j] = Math.max(paired, worth[i + 1][j], worth[i][j + 1]);
    }
  }
  return worth;
}

function likeness(expected, actual) {
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

/** The arguments of a pair, one by one, as JSON; null where a side has none of that name. */
function comparedArguments(expected, actual) {
  const [wanted, given] = [named(expected?.args), named(actual?.args)];
  return [...new Set([...wanted.keys(), ...given.keys()])].map((name) => {
    const [was, is] = [wanted.get(name), given.get(name)];
    return {
      name,
      expected: was === undefined ? null : JSON.stringify(was),
      actual: is === undefined ? null : JSON.stringify(is),
      differs:
        !expected || !actual
          ? false
          : was === undefined || is === undefined || canonical(was) !== canonical(is),
    };
  });
}

/** Arguments by name; those that are no object stand under no name. */
function named(args) {
  if (args === null || args === undefined) return new Map();
  return isObject(args) ? new Map(Object.entries(args)) : new Map([['', args]]);
}
