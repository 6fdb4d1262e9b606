// Differences of two texts by words: what only the reference has, and what only this run has.

// Beyond this many comparisons, sentences are compared, and beyond it again, whole texts.
const MAX_COMPARED = 4_000_000;
// Shorter equal pieces between two changes, and those shorter than both changes, are shown as
// changed: fewer, longer marks read better.
const MIN_EQUAL = 4;
// Texts that share less are shown as two whole texts.
const MIN_COMMON = 0.25;
// Characters of a line of the comment, and those that it shows from the first difference on.
const CONTEXT = 88;
const MAX_EXCERPT = 2 * CONTEXT;
// Shorter equal pieces are not worth a button.
const MIN_FOLDED = 60;

/** At most a line of the comment, or another number of characters. */
function cutText(text, most = CONTEXT) {
  return text.length > most ? `${text.slice(0, most - 1)}\u2026` : text;
}

/** Pieces of both texts in order, as ["=" | "-" | "+", text]: "-" is only in the reference. */
function diffTexts(reference, actual) {
  if (reference === actual) return reference ? [['=', reference]] : [];
  const whole = [
    ['-', reference],
    ['+', actual],
  ].filter(([, text]) => text);
  const [before, left, right, after] = splitChanged(words(reference), words(actual));
  let [one, other] = [left, right];
  if (one.length * other.length > MAX_COMPARED) {
    [one, other] = [sentences(one.join('')), sentences(other.join(''))];
  }
  if (one.length * other.length > MAX_COMPARED) return whole;
  const pieces = mergeIslands([
    ['=', before],
    ...commonPieces(one, other),
    ['=', after],
  ]);
  const common = pieces.reduce((sum, [kind, text]) => sum + (kind === '=' ? inked(text) : 0), 0);
  return common < MIN_COMMON * Math.min(inked(reference), inked(actual)) ? whole : pieces;
}

/**
 * The pieces for each side, of which the reference may be cut: `left` characters of it are not known. What
 * follows in this run is not compared, nor words that the cut may divide.
 */
function diffStart(start, left, actual) {
  if (!left) return Array(2).fill(diffTexts(start, actual));
  const whole = (text) => text.replace(/[\p{L}\p{N}_.-]+$/u, '') || text;
  const part = actual.slice(0, start.length);
  // Ends that differ: sides of different length before are not cut at the same place.
  let pieces = diffTexts(`${whole(start)}\u0001`, `${whole(part)}\u0002`);
  const ends = pieces.splice(-2).map(([kind, text]) => [kind, text.slice(0, -1)]);
  if (ends.every(([, text]) => text)) pieces.push(...ends);
  if (!countDifferences(pieces)) pieces = diffTexts(start, part);
  const length = (side) => pieces.reduce((sum, [kind, text]) => sum + (kind === '=' || kind === side ? text.length : 0), 0);
  return [[...pieces, ['=', start.slice(length('-'))]], [...pieces, ['=', actual.slice(length('+'))]]];
}

function inked(text) {
  return text.replaceAll(/\s+/g, '').length;
}

function words(text) {
  return text.match(/[\p{L}\p{N}_.-]*[\p{L}\p{N}_]|\s+|[^\s]/gu) ?? [];
}

function sentences(text) {
  return text.split(/(?<=[.!?\n]\s)/);
}

/** What both start with, the rest of each, and what both end with. */
function splitChanged(one, other) {
  const most = Math.min(one.length, other.length);
  let start = 0;
  while (start < most && one[start] === other[start]) start++;
  let end = 0;
  while (end < most - start && one.at(-1 - end) === other.at(-1 - end)) end++;
  return [
    one.slice(0, start).join(''),
    one.slice(start, one.length - end),
    other.slice(start, other.length - end),
    one.slice(one.length - end).join(''),
  ];
}

/** The pieces of a longest common subsequence, and those between them. */
function commonPieces(one, other) {
  const width = other.length + 1;
  const best = new Uint32Array((one.length + 1) * width);
  for (let i = one.length - 1; i >= 0; i--) {
    for (let j = other.length - 1; j >= 0; j--) {
      best[i * width + j] =
        one[i] === other[j]
          ? best[(i + 1) * width + j + 1] + 1
          : Math.max(best[(i + 1) * width + j], best[i * width + j + 1]);
    }
  }
  const pieces = [];
  let i = 0;
  let j = 0;
  while (i < one.length || j < other.length) {
    if (i < one.length && j < other.length && one[i] === other[j]) {
      pieces.push(['=', one[i++]]);
      j++;
    } else if (
      j === other.length ||
      (i < one.length && best[(i + 1) * width + j] >= best[i * width + j + 1])
    ) {
      pieces.push(['-', one[i++]]);
    } else {
      pieces.push(['+', other[j++]]);
    }
  }
  return pieces;
}

/** Join neighbours, with short equal pieces between changes, and put "-" before "+". */
function mergeIslands(pieces) {
  const equalRuns = [];
  for (const [kind, text] of pieces) {
    if (!text) continue;
    const last = equalRuns.at(-1);
    if (kind === '=' && last?.[0] === '=') last[1] += text;
    else equalRuns.push([kind, text]);
  }
  const merged = [];
  let gone = '';
  let come = '';
  const flush = () => {
    if (gone) merged.push(['-', gone]);
    if (come) merged.push(['+', come]);
    gone = come = '';
  };
  equalRuns.forEach(([kind, text], index) => {
    const between = (gone || come) && index < equalRuns.length - 1;
    if (kind === '-') gone += text;
    else if (kind === '+') come += text;
    else if (between && isIsland(text, Math.max(gone.length, come.length), equalRuns, index)) {
      gone += text;
      come += text;
    } else {
      flush();
      merged.push(['=', text]);
    }
  });
  flush();
  return merged;
}

function isIsland(text, before, pieces, index) {
  if (text.trim().length < MIN_EQUAL) return true;
  const sizes = { '-': 0, '+': 0 };
  for (let at = index + 1; at < pieces.length && pieces[at][0] !== '='; at++)
    sizes[pieces[at][0]] += pieces[at][1].length;
  return text.length <= Math.min(before, Math.max(sizes['-'], sizes['+']));
}

/** The number of differences: pieces between two equal ones are one difference. */
function countDifferences(pieces) {
  const isDifference = (piece) => piece?.[0] === '-' || piece?.[0] === '+';
  return pieces.filter((piece, index) => isDifference(piece) && !isDifference(pieces[index - 1])).length;
}

/**
 * Fold equal text that is not beside a difference: it becomes a piece ["~", text]. Beside one, the
 * sentence stays, as in the comment, but not more than a line of it.
 */
function foldEqual(pieces) {
  if (!countDifferences(pieces)) return pieces;
  return pieces.flatMap(([kind, text, ...rest], index) => {
    if (kind !== '=') return [[kind, text, ...rest]];
    const start = index ? sentenceEnd(text) : 0;
    const end = index < pieces.length - 1 ? sentenceStart(text) : text.length;
    if (end - start < MIN_FOLDED) return [[kind, text]];
    return [
      ['=', text.slice(0, start)],
      ['~', text.slice(start, end)],
      ['=', text.slice(end)],
    ].filter(([, part]) => part);
  });
}

/** Where the sentence ends that a text begins in. */
function sentenceEnd(text) {
  const found = /[.!?](?=\s)|\n/.exec(text.slice(0, CONTEXT));
  return found ? found.index + 1 : lastSpace(text.slice(0, CONTEXT));
}

/** Where the sentence begins that a text ends in. */
function sentenceStart(text) {
  const first = Math.max(0, text.length - CONTEXT);
  const last = text.slice(first);
  const found = [...last.matchAll(/[.!?]\s+|\n+/g)].at(-1);
  if (found) return first + found.index + found[0].length;
  const space = last.search(/\s/);
  return first ? first + (space < 0 ? 0 : space + 1) : 0;
}

function lastSpace(text) {
  return text.search(/\s\S*$/) + 1 || text.length;
}

/**
 * The first difference, of several the first with a number, with what is beside it: at most MAX_EXCERPT characters a side.
 */
function excerptOf(pieces) {
  const shown = [];
  const left = { '-': MAX_EXCERPT, '+': MAX_EXCERPT };
  const folded = foldEqual(pieces);
  const number = folded.findIndex(([kind, text]) => (kind === '-' || kind === '+') && /\d/.test(text));
  const start = folded.findLastIndex(([kind], at) => kind === '~' && at < number);
  for (const [kind, text, ...rest] of folded.slice(Math.max(0, start))) {
    const isDifference = kind === '-' || kind === '+';
    if (!isDifference && !countDifferences(shown)) {
      shown.push([kind, text]);
      continue;
    }
    if (kind === '~') break;
    const sides = isDifference ? [kind] : ['-', '+'];
    const room = Math.max(...sides.map((side) => left[side]));
    if (room <= 0) break;
    const part = text.length > room ? `${text.slice(0, room - 1)}\u2026` : text;
    shown.push([kind, part, ...rest]);
    for (const side of sides) left[side] -= text.length;
  }
  return shown;
}
