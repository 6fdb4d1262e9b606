// Tool calls beside their reference, as in the other reports, with single arguments.

const MAX_CALLS = 200;

/**
 * The calls of a reference (expected, or of the baseline) beside the actual ones.
 * A mark is "" (equal), "differs", "unknown", "missing", "unexpected" or "moved".
 */
function compareCalls(reference, actual) {
  const sides = [reference, actual].map((calls) => calls.slice(0, MAX_CALLS).map(withKey));
  return {
    rows: markedRows(pairCalls(...sides)),
    hidden: Math.max(0, Math.max(reference.length, actual.length) - MAX_CALLS),
  };
}

function withKey(call) {
  return { ...call, key: canonical(call.arguments ?? null) };
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

/** JSON on one line, with spaces as in the other reports. */
function jsonText(value) {
  if (Array.isArray(value)) return `[${value.map(jsonText).join(', ')}]`;
  if (!isObject(value)) return JSON.stringify(value);
  const members = Object.entries(value).map(([key, each]) => `${JSON.stringify(key)}: ${jsonText(each)}`);
  return `{${members.join(', ')}}`;
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
    const alike = similarity(expected[i], actual[j]);
    if (alike && best[i][j] === alike + best[i + 1][j + 1]) {
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
      const alike = similarity(expected[i], actual[j]);
      const paired = alike ? alike + best[i + 1][j + 1] : 0;
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
  // An eval case may leave the arguments out, and any are as expected then; a recording, and nothing is known then.
  if (expected && actual) return expected.arguments == null || same(expected, actual) ? '' : actual.arguments == null ? 'unknown' : 'differs';
  if (expected) return unexpected.some((call) => same(call, expected)) ? 'moved' : 'missing';
  return missing.some((call) => same(call, actual)) ? 'moved' : 'unexpected';
}

/** The arguments of a pair by name, each as pieces of its JSON as in a difference of texts. */
function comparedArguments(expected, actual) {
  const [left, right] = [named(expected?.arguments), named(actual?.arguments)];
  const isCompared = expected?.arguments != null && actual?.arguments != null;
  const names = new Set([...right.keys(), ...left.keys()]);
  return [...names].map((name) => ({ name, pieces: diffMember(left, right, name, name, isCompared) }));
}

function diffMember(left, right, name, path, isCompared = true) {
  if (!isCompared) return [['=', jsonText((right.has(name) ? right : left).get(name))]];
  if (!left.has(name)) return [['+', jsonText(right.get(name)), path]];
  if (!right.has(name)) return [['-', jsonText(left.get(name)), path]];
  return diffJson(left.get(name), right.get(name), path);
}

// Longer texts in arguments are compared by words.
const MAX_LEAF = 60;
// Values with a longer path are compared as a whole, however deep they are.
const MAX_PATH = 400;

/** Compare two values leaf by leaf: pieces of JSON, those that differ with the path of the leaf. */
function diffJson(reference, actual, path) {
  if (canonical(reference) === canonical(actual)) return [['=', jsonText(actual)]];
  if (path.length <= MAX_PATH && isObject(reference) && isObject(actual)) {
    const [left, right] = [named(reference), named(actual)];
    const names = [...new Set([...right.keys(), ...left.keys()])];
    return joined('{', '}', names.map((name) => {
      const pieces = diffMember(left, right, name, path ? `${path}.${name}` : name);
      return withPrefix(`${JSON.stringify(name)}: `, pieces, left.has(name) && right.has(name));
    }));
  }
  if (path.length <= MAX_PATH && Array.isArray(reference) && Array.isArray(actual)) {
    const items = pairItems(reference, actual).map(([i, j]) => {
      const at = `${path}[${j ?? i}]`;
      if (j === null) return [['-', jsonText(reference[i]), at]];
      return i === null ? [['+', jsonText(actual[j]), at]] : diffJson(reference[i], actual[j], at);
    });
    return joined('[', ']', items);
  }
  const [before, after] = [jsonText(reference), jsonText(actual)];
  if (typeof reference === 'string' && typeof actual === 'string' && Math.min(before.length, after.length) > MAX_LEAF)
    return diffTexts(before, after).map(([kind, text]) => (kind === '=' ? [kind, text] : [kind, text, path]));
  return [
    ['-', before, path],
    ['+', after, path],
  ];
}

/** Put the name of a member before its pieces; a name that only one side has is part of it. */
function withPrefix(prefix, pieces, isShared) {
  if (isShared) return [['=', prefix], ...pieces];
  const [[kind, text, path]] = pieces;
  return [[kind, `${prefix}${text}`, path]];
}

/** The pieces of items with commas, which are of the sides that have an item before. */
function joined(open, close, items) {
  const pieces = [['=', open]];
  const put = ([kind, text, ...path]) => {
    const last = pieces.at(-1);
    if (kind === last[0] && (kind === '=' || !path.length || path[0] === last[2])) last[1] += text;
    else pieces.push([kind, text, ...path]);
  };
  const isFilled = { '-': false, '+': false };
  for (const each of items) {
    const [kind, , path] = each[0];
    const sides = each.length === 1 && kind !== '=' ? [kind] : ['-', '+'];
    const filled = sides.filter((side) => isFilled[side]);
    if (filled.length === 2) put(['=', ', ']);
    else if (sides.length === 2 && filled.length) put([filled[0], ', ', pieces.at(-1)[2]]);
    if (sides.length === 1 && filled.length) put([kind, `, ${each[0][1]}`, path]);
    else each.forEach(put);
    for (const side of sides) isFilled[side] = true;
  }
  put(['=', close]);
  return pieces;
}

const MAX_ITEMS = 400;

/** Pair the items of two lists in order: equal ones, and what is between these by position. */
function pairItems(reference, actual) {
  if (reference.length > MAX_ITEMS || actual.length > MAX_ITEMS) {
    const most = Math.max(reference.length, actual.length);
    return Array.from({ length: most }, (_, at) => [at < reference.length ? at : null, at < actual.length ? at : null]);
  }
  const [left, right] = [reference.map(canonical), actual.map(canonical)];
  const pairs = [];
  let gap = [[], []];
  let [i, j] = [0, 0];
  const flush = () => {
    const [gone, come] = gap;
    for (let at = 0; at < Math.max(gone.length, come.length); at++) pairs.push([gone[at] ?? null, come[at] ?? null]);
    gap = [[], []];
  };
  for (const [kind] of commonPieces(left, right)) {
    if (kind === '=') {
      flush();
      pairs.push([i++, j++]);
    } else if (kind === '-') gap[0].push(i++);
    else gap[1].push(j++);
  }
  flush();
  return pairs;
}

/** The rows with each moved call once, at its place in this run, with its place in the reference. */
function joinMoved(rows) {
  const [places, wanted, claimed] = [new Map(), [], new Set()];
  const times = (name, side) => rows.filter((row) => row[side]?.name === name).length;
  for (const row of rows) {
    row.times = row.actual && row.expected ? null : ['actual', 'expected'].map((side) => times((row.actual ?? row.expected).name, side));
    if (row.expected) places.set(row, places.size + 1);
    if (row.mark === 'moved' && row.expected) wanted.push(row);
  }
  const found = new Map();
  for (const row of rows.filter(({ mark, actual }) => mark === 'moved' && actual)) {
    const partner = wanted.find((each) => !claimed.has(each) && same(each.expected, row.actual));
    if (partner) {
      claimed.add(partner);
      found.set(row, partner);
    }
  }
  let place = 0;
  return rows.flatMap((row) => {
    if (row.actual) place += 1;
    if (claimed.has(row)) return [];
    const partner = found.get(row);
    if (partner) {
      const { expected } = partner;
      return [{ ...row, expected, place, from: places.get(partner), arguments: comparedArguments(expected, row.actual) }];
    }
    if (row.mark !== 'moved') return [row];
    return [{ ...row, mark: row.actual ? 'unexpected' : 'missing' }];
  });
}

/** Arguments by name; a value that is not an object has the name "". */
function named(args) {
  if (args === null || args === undefined) return new Map();
  return isObject(args) ? new Map(Object.entries(args)) : new Map([['', args]]);
}

/** Whether a text has a name that is not part of a longer one. */
function isNamed(name, text) {
  return name !== '' && text.split(name).some((part, at, all) => at && !/\w$/.test(all[at - 1]) && !/^\w/.test(part));
}

/** The rows of the check `trajectory`, which aligns calls itself; [] for other details. */
function alignedTurns(details) {
  const found = details?.trajectories;
  if (!Array.isArray(found)) return [];
  return found.filter(
    (turn) =>
      turn?.satisfied === false &&
      typeof turn.title === 'string' &&
      Array.isArray(turn.rows) &&
      turn.rows.every((row) =>
        ['mark', 'expected', 'actual', 'note'].every((key) => typeof row?.[key] === 'string'),
      ),
  );
}
