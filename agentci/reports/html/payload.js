// Formatting of evaluator input and output, which is untrusted text and may be JSON.

const MAX_INDENT = 20;

/**
 * Indent JSON and keep its tokens, apart from escaped characters; null if the text is not an object
 * or a list.
 */
function indented(text) {
  try {
    const value = JSON.parse(text);
    if (!isObject(value) && !Array.isArray(value)) return null;
  } catch {
    return null;
  }
  let depth = 0;
  let before = '';
  const written = [];
  const line = () => `\n${'  '.repeat(Math.min(depth, MAX_INDENT))}`;
  for (const [token] of text.matchAll(/"(?:[^"\\]|\\.)*"|[[\]{},:]|[^\s[\]{},:"]+/g)) {
    const opens = before === '{' || before === '[';
    if (token === '}' || token === ']') {
      depth -= 1;
      written.push(opens ? '' : line());
    } else if (opens || before === ',') {
      written.push(line());
    }
    if (token === '{' || token === '[') depth += 1;
    written.push(token[0] === '"' ? JSON.stringify(JSON.parse(token)) : token);
    if (token === ':') written.push(' ');
    before = token;
  }
  return written.join('');
}

// Control characters, and those that are invisible or change the reading order.
const INVISIBLE = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]/g;

function escapeInvisible(text) {
  return text.replace(
    INVISIBLE,
    (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`,
  );
}

/** A command of agentci, for a shell. */
function command(...words) {
  const quoted = (word) => (/^[\w./:@%+=,-]+$/.test(word) ? word : `'${word.split("'").join("'\\''")}'`);
  return ['agentci', ...words.map(quoted)].join(' ');
}

/** The file of a place in it. */
function fileOf(place) {
  return place.replace(/(:\d+)+$/, '');
}

/** The size of a text and how it was shortened: "12 bytes; the middle is left out". */
function remarks({ size, notes }) {
  return [`${count(size)} ${size === 1 ? 'byte' : 'bytes'}`, ...notes].join('; ');
}
