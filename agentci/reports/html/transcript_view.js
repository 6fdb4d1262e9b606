// The input and output of a check's evaluator, parsed and rendered when they are opened.

function transcriptView(check, isMerged, file) {
  if (check.transcript !== undefined) return transcriptOnDemand(check);
  const { name, config } = check.evaluator;
  if (check.omitted) return make('p.omitted', omittedNote(name, config, file));
  if (!isMerged || check.status === 'passed') return null;
  return make(
    'p.omitted',
    `Evaluator input and output of ${name}, if recorded, is in the report.html of the run that this check comes from.`,
  );
}

function omittedNote(name, config, file) {
  return [
    `Evaluator input and output of ${name} was left out, because this page reached its size limit. To get it, run only this evaluator, `,
    make('code', command('run', config, '--only', name)),
    ', or run its program on the trace: ',
    make('code', command('evaluator', 'run', 'PROGRAM', '--trace', fileOf(file))),
    '.',
  ];
}

function transcriptOnDemand({ transcript, evaluator }) {
  const shown = make('div');
  const fill = () => {
    if (shown.firstChild) return;
    const calls = JSON.parse(document.getElementById(`transcript-${transcript}`).textContent);
    shown.append(...calls.map(callView));
  };
  return make(
    'details.transcript',
    { ontoggle: fill },
    make('summary', make('code', evaluator.name), quiet(` ${evaluator.type}`)),
    shown,
  );
}

function callView({ name, outcome, texts }) {
  return make(
    'article',
    make('h3', name),
    make('p.text', outcome),
    texts.map((text) => payloadView(text, name)),
  );
}

function payloadView(text, owner) {
  const pretty = indented(text.content);
  const shown = make('pre', { tabindex: 0, role: 'group', label: `${text.name} of ${owner}` });
  const fill = (isPretty) => {
    shown.textContent = escapeInvisible(isPretty ? pretty : text.content);
  };
  fill(pretty !== null);
  return make(
    'section.payload',
    make('h4', text.name),
    make('span.remarks-of', remarks(text)),
    pretty === null ? null : toggle('Raw text', (isOn) => fill(!isOn)),
    text.content && copyButton(text.content, shown),
    text.content && shown,
  );
}

function toggle(label, turn) {
  const press = ({ currentTarget: button }) => {
    const isOn = button.ariaPressed !== 'true';
    button.ariaPressed = String(isOn);
    turn(isOn);
  };
  return make('button.btn', { 'aria-pressed': 'false', onclick: press }, label);
}

/** Copy a text; without access to the clipboard, select it where it is shown. */
function copyButton(content, shown, label = 'Copy') {
  const status = make('span', { role: 'status' });
  const copy = async () => {
    try {
      await navigator.clipboard.writeText(content);
      status.textContent = 'Copied';
    } catch {
      if (shown) getSelection().selectAllChildren(shown);
      status.textContent = shown ? 'Selected; press Ctrl+C to copy' : 'Copy it from the address bar';
    }
  };
  return [make('button.btn', { onclick: copy }, label), status];
}
