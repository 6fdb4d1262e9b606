// The exchanges of a check, which are read and shown when somebody asks for them.

function exchangesView(check, isMerged) {
  if (check.exchanges !== undefined) return exchangesOnDemand(check.exchanges);
  if (check.left_out) return make('p', { class: 'untold' }, noRoomFor(check));
  if (!isMerged || check.status === 'passed') return null;
  return make(
    'p',
    { class: 'untold' },
    'What its evaluator was sent and what came back, if anything, is in the report.html of the run ' +
      'that judged it.',
  );
}

function noRoomFor({ evaluator, case: ofCase }) {
  return [
    'There was no room on this page for what its evaluator was sent and what came back: worse ' +
      'checks had it. A run of this evaluator alone has more room, ',
    make('code', {}, command('run', evaluator.config, '--only', evaluator.name)),
    ', and a program can be tried by itself: ',
    make('code', {}, command('evaluator', 'run', 'PROGRAM', '--trace', fileOf(ofCase.file))),
    '.',
  ];
}

function exchangesOnDemand(number) {
  const shown = make('div', {});
  const fill = () => {
    if (shown.firstChild) return;
    const found = JSON.parse(document.getElementById(`exchanges-${number}`).textContent);
    shown.append(...found.map(exchangeView));
  };
  const title = 'Exactly what was sent, and what came back';
  return make('details', { id: 'exchanges', ontoggle: fill }, make('summary', {}, title), shown);
}

function exchangeView({ name, outcome, texts }) {
  return make(
    'article',
    { class: 'turn' },
    make('h3', {}, name),
    make('p', { class: 'said' }, outcome),
    texts.map((text) => textView(text, name)),
  );
}

function textView(text, owner) {
  const pretty = indented(text.content);
  const shown = make('pre', { tabindex: 0, role: 'group', 'aria-label': `${text.name} of ${owner}` });
  const show = (isPretty) => {
    shown.textContent = spelt(isPretty ? pretty : text.content);
  };
  show(pretty !== null);
  return make(
    'section',
    { class: 'text' },
    make('h4', {}, text.name),
    make('span', { class: 'remarks' }, remarks(text)),
    pretty === null ? null : switchTo('Exact text', (isOn) => show(!isOn)),
    text.content ? copyButton(text.content, shown) : null,
    text.content ? shown : null,
  );
}

function switchTo(words, turn) {
  const press = ({ currentTarget: button }) => {
    const isOn = button.ariaPressed !== 'true';
    button.ariaPressed = String(isOn);
    turn(isOn);
  };
  return make('button', { type: 'button', 'aria-pressed': 'false', onclick: press }, words);
}

/** Copies a text as it came; where a browser lets no page do so, what is shown is selected. */
function copyButton(content, shown) {
  const told = make('span', { role: 'status' });
  const copy = async () => {
    try {
      await navigator.clipboard.writeText(content);
      told.textContent = 'Copied';
    } catch {
      getSelection().selectAllChildren(shown);
      told.textContent = 'Selected, to be copied';
    }
  };
  return [make('button', { type: 'button', onclick: copy }, 'Copy'), told];
}
