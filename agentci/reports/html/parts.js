// Small parts that several views show: status, change, score.

const ICONS = { passed: '\u2713', failed: '\u2715', errored: '!', skipped: '\u2013' };
const STATUS_WORDS = { passed: 'Passed', failed: 'Failed', errored: 'Error', skipped: 'Skipped', removed: 'Removed' };
// Of a check.
const LOST = 'No longer evaluated';

// In the order of bars and legends.
const LISTED_STATUSES = ['passed', 'failed', 'errored', 'skipped'];

/** The icon of a status; that of a case, whose state is known, is an outline if it failed before. A failed advisory check is no matter of the state. */
function dot(status, state = '') {
  const [, words, colour] = CLASSES[state] ?? [];
  const label = (isProblem({ status }) > isProblem({ status: colour }) ? '' : words) || STATUS_WORDS[status];
  return make('span.dot', { class: `${status} is-${state}`, role: 'img', label, title: label }, ICONS[status]);
}

/** A name that breaks after punctuation and between humps only; what is longer than a line ends with an ellipsis. */
function nameOf(text) {
  return text.split(/(?<=[\s_:./-])|(?<=[a-z])(?=[A-Z])/).map((piece) => make('span.piece', piece));
}

function pill(colour, text) {
  return make('span.pill', { class: colour }, text);
}

/** The mark of an evaluator that cannot fail the gate. */
function advisoryPill({ required }) {
  return required === false && [' ', pill('note', 'advisory')];
}

function statePill(state, status) {
  const [, label, colour] = CLASSES[state] ?? [];
  if (colour) return pill(colour, label);
  if (state || status === 'passed' || status === 'skipped') return null;
  return pill(status, STATUS_WORDS[status]);
}

/**
 * An arrow with the size of a change; null for a small one.
 * It is green or red where more is better (`good` 1) or worse (-1), and has no colour for 0.
 */
function delta(change, { format = (value) => number(value, 2), good = 1, least = MIN_CHANGE } = {}) {
  if (change === null || change === undefined || Math.abs(change) < least) return null;
  const colour = good === 0 ? '' : change * good > 0 ? 'better' : 'worse';
  return make(
    'span.delta',
    { class: colour },
    unseen(change > 0 ? 'up ' : 'down '),
    make('span', { 'aria-hidden': 'true' }, change > 0 ? '\u25b2 ' : '\u25bc '),
    format(Math.abs(change)),
  );
}

/** Whether two runs of the same agent may differ as much. */
function isNoise(now, before, share) {
  return Math.abs(now - before) < share * before;
}

/** How an amount of a case, a turn or a step changed, if that is known. */
function amountDelta(now, before, format = milliseconds, least = 50) {
  return before === undefined ? null : delta(now - before, { format, good: isNoise(now, before, NOTICED) ? 0 : -1, least });
}

/** A bar with the share of each status. */
function shareBar(totals) {
  const shown = LISTED_STATUSES.filter((status) => totals[status]);
  const text = shown.map((status) => `${count(totals[status])} ${status}`).join(', ');
  return make(
    'div.shares',
    { role: 'img', label: text || 'no checks' },
    shown.map((status) => make('i', { class: status, style: { 'flex-grow': totals[status] } })),
  );
}

/** A score with the threshold, and a ring at the baseline's score. */
function meter(check) {
  const { score: now, status, before, evaluator } = check;
  if (now === undefined || now < 0 || now > 1) return null;
  const threshold = evaluator.threshold;
  const old = before?.[1];
  const label = [
    `score ${number(now)}`,
    threshold === null ? '' : `threshold ${number(threshold)}`,
    old == null ? '' : `baseline ${number(old)}`,
  ];
  const at = (value) => ({ left: `${100 * Math.min(1, Math.max(0, value))}%` });
  return make(
    'div.meter',
    { role: 'img', label: label.filter(Boolean).join(', ') },
    make('i', { class: status, style: { width: `${100 * now}%` } }),
    old == null || Math.abs(now - old) < MIN_CHANGE
      ? null
      : make('u', { style: at(old) }),
    threshold === null ? null : make('b', { style: at(threshold) }),
  );
}

const isProblem = ({ status, turned }) => status === 'failed' || status === 'errored' || turned === 'lost';

function scoreWord(check) {
  if (check.status === 'errored') return 'error';
  const isOverruled = check.status === 'failed' && check.score >= (check.evaluator.threshold ?? Infinity);
  if (check.score === undefined || isOverruled) return check.status === 'skipped' ? 'skipped' : check.status;
  return score(check.score);
}

/** "1 → 0.58", "0.9 → error": the outcome in the baseline and now. */
function beforeAndNow(check) {
  const [status, old] = check.before ?? [];
  const was = old == null ? status : score(old);
  return make('span.num', was ? [was, ' \u2192 '] : '', make('b', scoreWord(check)));
}

const MAX_TEXT = 1500;
// In a list of many cases.
const MAX_LISTED_TEXT = 600;
// Of a text with few differences: its equal parts are folded one by one.
const MAX_COMPARED_TEXT = 6000;

/** Long text, folded with its length on a button. */
function folded(nodes, length, most = here.view === 'compare' ? MAX_LISTED_TEXT : MAX_TEXT) {
  const box = make('div.text', nodes);
  if (length < most) return box;
  box.classList.add('clamp');
  const more = `Show all ${count(length)} characters`;
  const flip = ({ currentTarget: button }) => {
    const isOpen = !box.classList.toggle('clamp');
    button.setAttribute('aria-expanded', String(isOpen));
    button.textContent = isOpen ? 'Show less' : more;
  };
  const button = make('button.btn.more', { 'aria-expanded': 'false', onclick: flip }, more);
  return [box, button];
}

/** Folded content, made when it is opened. */
function laterView(kind, label, makeContent, isOpen = false) {
  const fill = ({ currentTarget: box }) => box.children.length < 2 && append(box, [makeContent()]);
  return make(kind, { ontoggle: fill, open: isOpen }, make('summary', label), isOpen && makeContent());
}

/** What one side of a difference has, with equal text that is far from any difference folded. */
function comparedText(pieces, side) {
  const shown = foldEqual(pieces).filter(([kind]) => kind === '=' || kind === '~' || kind === side);
  const length = shown.reduce((sum, [kind, text]) => sum + (kind === '~' ? 0 : text.length), 0);
  const equal = shown.reduce((sum, [kind, text]) => sum + (kind === '=' ? text.length : 0), 0);
  return folded(markedText(shown, side), length, 2 * equal > length ? MAX_COMPARED_TEXT : undefined);
}

/** The pieces of a difference that one side has; "-" is the reference, null means both. */
function markedText(pieces, side) {
  return pieces
    .filter(([kind]) => side === null || kind === '=' || kind === '~' || kind === side)
    .map(([kind, text]) => {
      if (kind === '=') return text;
      if (kind === '~') return equalText(text);
      return kind === '-'
        ? make('del', side === null ? unseen('reference ') : null, plain(text))
        : make('ins', side === null ? unseen('this run ') : null, plain(text));
    });
}

/** Folded equal text: a button that shows it. */
function equalText(text) {
  const label = `\u22ef ${countOf(text.length, 'unchanged character')} \u22ef`;
  const open = ({ currentTarget: button }) => {
    const shown = make('span', { tabindex: -1 }, text);
    button.replaceWith(shown);
    shown.focus({ preventScroll: true });
  };
  return make('button.equal', { title: 'Show', onclick: open }, label);
}

/** Links to cases by their ids, and how many more there are. */
function caseLinks(ids, more, start = '') {
  const links = ids.map((id, index) => [index ? ', ' : '', make('a', { href: writeHash(`/case/${encodeURIComponent(id)}`) }, id)]);
  return make('p.quiet', start, links, more ? `, \u2026 and ${count(more)} more` : '');
}

function card(label, ...content) {
  return make('section.card', { label }, content);
}

/** A table that scrolls sideways in its own region. */
function scrolled(label, table) {
  return make('div.scroll', { tabindex: 0, role: 'region', label }, table);
}
