// The input and output of a check's evaluator, parsed and rendered when they are opened.

function transcriptView(check, isMerged) {
  if (check.transcript !== undefined) return transcriptOnDemand(check.transcript);
  if (check.omitted) return make('p', { class: 'omitted' }, omittedNote(check));
  if (!isMerged || check.status === 'passed') return null;
  return make(
    'p',
    { class: 'omitted' },
    'Evaluator input and output, if recorded, is in the report.html of the run that this check ' +
      'comes from.',
  );
}

function omittedNote({ evaluator, case: ofCase }) {
  return [
    'Evaluator input and output was left out, because this page reached its size limit. To get it, ' +
      'run only this evaluator, ',
    make('code', {}, command('run', evaluator.config, '--only', evaluator.name)),
    ', or run its program on the trace: ',
    make('code', {}, command('evaluator', 'run', 'PROGRAM', '--trace', fileOf(ofCase.file))),
    '.',
  ];
}

function transcriptOnDemand(number) {
  const shown = make('div', {});
  const fill = () => {
    if (shown.firstChild) return;
    const calls = JSON.parse(document.getElementById(`transcript-${number}`).textContent);
    shown.append(...calls.map(callView));
  };
  const title = 'Evaluator input and output';
  return make('details', { id: 'transcript', ontoggle: fill }, make('summary', {}, title), shown);
}

function callView({ name, outcome, texts }) {
  return make(
    'article',
    { class: 'turn' },
    make('h3', {}, name),
    make('p', { class: 'prose' }, outcome),
    texts.map((text) => textView(text, name)),
  );
}

function textView(text, owner) {
  const pretty = indented(text.content);
  const shown = make('pre', { tabindex: 0, role: 'group', 'aria-label': `${text.name} of ${owner}` });
  const show = (isPretty) => {
    shown.textContent = escapeControl(isPretty ? pretty : text.content);
  };
  show(pretty !== null);
  return make(
    'section',
    { class: 'text' },
    make('h4', {}, text.name),
    make('span', { class: 'remarks' }, remarks(text)),
    pretty === null ? null : toggle('Raw text', (isOn) => show(!isOn)),
    text.content ? copyButton(text.content, shown) : null,
    text.content ? shown : null,
  );
}

function toggle(label, turn) {
  const press = ({ currentTarget: button }) => {
    const isOn = button.ariaPressed !== 'true';
    button.ariaPressed = String(isOn);
    turn(isOn);
  };
  return make('button', { type: 'button', 'aria-pressed': 'false', onclick: press }, label);
}

/** Copy the raw text; without access to the clipboard, select the text that is shown. */
function copyButton(content, shown) {
  const status = make('span', { role: 'status' });
  const copy = async () => {
    try {
      await navigator.clipboard.writeText(content);
      status.textContent = 'Copied';
    } catch {
      getSelection().selectAllChildren(shown);
      status.textContent = 'Selected; press Ctrl+C to copy';
    }
  };
  return [make('button', { type: 'button', onclick: copy }, 'Copy'), status];
}
