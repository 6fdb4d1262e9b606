// Errors, warnings and notes, and how the policy differs from that of the base.

const LEVEL_COLOURS = { error: 'failed', warning: 'errored', note: 'note' };

function messagesView() {
  const { policy } = DATA;
  const messages = DATA.messages ?? [];
  return [
    make('h1', 'Messages and policy'),
    policy ? policyView(policy) : null,
    messages.length ? card('Messages', messages.map(messageRow)) : make('div.card.none', make('p', 'No messages.')),
  ];
}

function messageRow({ level, place, text, cases = [], more = 0 }) {
  const names = cases.flatMap((id, index) => [index ? ', ' : '', make('a', { href: writeHash(`/case/${encodeURIComponent(id)}`) }, id)]);
  return make(
    'div.message',
    pill(LEVEL_COLOURS[level], level),
    make('div', place ? [make('code', place), ' '] : null, prose(text), cases.length ? make('p.quiet', names, more ? `, \u2026 and ${count(more)} more` : '') : null),
  );
}

function policyView({ title, columns, changes, omitted, remarks }) {
  return make(
    'section.card.remarks',
    { 'aria-label': title },
    make('h2', title),
    changes.length ? scrolled(title, labelled(tableOf('wide', columns, changes), columns)) : null,
    omitted ? make('p.quiet', `\u2026 and ${count(omitted)} more`) : null,
    remarks.length ? list(remarks) : null,
  );
}
