// The page shows the table of checks, or one check if the address names it.

const pageTitle = document.title;
let scrolled = 0;

const [overview, detail, section] = ['overview', 'check', 'checks'].map((id) =>
  document.getElementById(id),
);
function show() {
  const check = byId.get(state.check);
  overview.hidden = Boolean(state.check);
  detail.hidden = !state.check;
  const found = currentChecks();
  if (state.check) showCheck(check, found);
  else showTable(found);
  document.title = check
    ? `${plain(check.case.id)} \u203a ${plain(check.evaluator.name)} - agentci`
    : pageTitle;
}

function showCheck(check, found) {
  const back = make('a', { href: writeHash({ ...state, check: '' }) }, '\u2190 All checks');
  const heading = check
    ? `${check.case.id} \u203a ${check.evaluator.name}`
    : `Check ${state.check} not found in this report`;
  const place = found.indexOf(check);
  const link = (label, other) => (other ? make('a', { href: addressOf(other) }, label) : null);
  detail.replaceChildren(
    make(
      'nav',
      { 'aria-label': 'Checks' },
      back,
      place < 0
        ? null
        : [
            link('Previous', found[place - 1]),
            make('span', {}, `${count(place + 1)} of ${count(found.length)}`),
            link('Next', found[place + 1]),
          ],
    ),
    make('h1', { tabindex: -1 }, heading),
    ...(check ? checkView(check, isMerged).flat().filter(Boolean) : []),
  );
}

function follow() {
  const from = state.check;
  if (!from) scrolled = scrollY;
  state = readHash(location.hash);
  show();
  if (state.check) {
    scrollTo(0, 0);
    detail.querySelector('h1').focus();
  } else if (from) {
    scrollTo(0, scrolled);
    [...body.querySelectorAll('a')]
      .find((each) => each.dataset.check === from)
      ?.focus({ preventScroll: true });
  } else if (location.hash.includes('=')) {
    section.scrollIntoView();
  }
}

function press(event) {
  const writing = event.target.closest('input, select, textarea');
  if (event.key === '/' && !event.ctrlKey && !event.metaKey && !writing && !state.check) {
    event.preventDefault();
    search.focus();
  } else if (event.key === 'Escape' && state.check) {
    location.hash = writeHash({ ...state, check: '' });
  }
}

section.replaceChildren(
  make('h2', {}, 'Checks'),
  controls(),
  make('div', { class: 'found' }, summary, clear),
  make(
    'table',
    { class: 'checks' },
    make('caption', { class: 'unseen' }, 'Checks'),
    make('thead', {}, head),
    body,
  ),
  pages,
);
addEventListener('hashchange', follow);
addEventListener('keydown', press);
show();
