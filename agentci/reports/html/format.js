// Numbers and amounts as text, as in the other reports.

function count(amount) {
  return amount == null ? '\u2013' : amount.toLocaleString('en');
}

/** "1 check", "12,000 checks", for nouns with a plural in -s. */
function countOf(amount, noun) {
  return `${count(amount)} ${noun}${amount === 1 ? '' : 's'}`;
}

/** At most three decimals, ties to even as in the other reports; "" without a value. */
function number(value, digits = 3) {
  if (value == null) return '';
  const scaled = value * 10 ** digits;
  const below = Math.floor(scaled);
  // Only such fractions are exactly between two decimals; toFixed rounds them up.
  const isTie = scaled - below === 0.5 && Number.isInteger(value * 2 ** (digits + 1));
  return String(isTie ? (below + (below % 2 ? 1 : 0)) / 10 ** digits : Number(value.toFixed(digits)));
}

/** A score in a table: at most two decimals, and never 1 or 0 for less or more than that. */
function score(value) {
  const shown = number(value, 2);
  return (shown === '1' && value < 1) || (shown === '0' && value > 0) ? number(value) : shown;
}

/** The texts that are not empty, with dots between. */
function dotted(...texts) {
  return texts.filter(Boolean).join(' \u00b7 ');
}

function milliseconds(value) {
  if (value == null) return '\u2013';
  if (value < 950) return `${Math.round(value)} ms`;
  if (value < 99_500) return `${(value / 1000).toFixed(1)} s`;
  return `${count(Math.round(value / 60_000))} min`;
}

/** US dollars, with the digits that a small amount needs. */
function dollars(value) {
  if (value == null) return '\u2013';
  return `$${value.toFixed(value !== 0 && Math.abs(value) < 1 ? 4 : 2)}`;
}

/** A share in percent, never 100 or 0 for less or more than that, and distinct from other shares. */
function percent(share, ...others) {
  for (let digits = 0; digits < 4; digits++) {
    const text = (each) => number(each * 100, digits);
    const shown = text(share);
    const isOther = others.every((each) => each === share || text(each) !== shown);
    if (isOther && (shown !== '100' || share >= 1) && (shown !== '0' || share <= 0)) return `${shown}%`;
  }
  return share < 0.5 ? '< 0.001%' : '> 99.999%';
}

/** An ISO 8601 date as "2026-03-11 14:32 UTC". */
function dateText(date) {
  const parsed = new Date(date);
  return Number.isNaN(parsed.getTime())
    ? date
    : `${parsed.toISOString().slice(0, 16).replace('T', ' ')} UTC`;
}
