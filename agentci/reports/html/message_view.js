// Errors, warnings and notes, and how the policy differs from that of the base.

const LEVEL_COLOURS = { error: 'failed', warning: 'errored', note: 'note' };

function messagesView() {
  const { policy } = DATA;
  return [
    make('h1', `Errors, warnings${policy ? ', notes and policy' : ' and notes'}`),
    policy && policyView(policy),
    messagesCard(),
    DATA.messages || policy ? null : make('div.card.none', make('p', 'No messages.')),
  ];
}

function messagesCard() {
  return DATA.messages && card('Messages', DATA.messages.map(messageRow));
}

function messageRow({ level, place, text, cases = [], more = 0 }) {
  return make(
    'div.message',
    pill(LEVEL_COLOURS[level], level),
    make('div', place ? [make('code', place), ' '] : null, prose(text), cases.length ? caseLinks(cases, more) : null),
  );
}

function policyView({ title, columns, changes, omitted, remarks }) {
  return make(
    'section.card.remarks',
    make('h2', title),
    changes.length ? scrolled(title, labelled(tableOf('wide', columns, changes.map((cells) => cells.map((text) => text || (cells.at(-1) === 'removed' ? 'present' : '\u2013')))), columns)) : null,
    omitted ? make('p.quiet', `\u2026 and ${count(omitted)} more`) : null,
    remarks.length ? list(remarks) : null,
  );
}
