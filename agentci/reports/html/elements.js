// Elements whose text is always a text node: no text on this page is parsed as HTML.

/**
 * Make an element: `section.card` has a class. Its attributes may come first: `on...` are
 * listeners, `style` is an object, `label` is for screen readers, null and false omit an attribute.
 */
function make(kind, ...content) {
  const [name, ...classes] = kind.split('.');
  const isGiven = isObject(content[0]) && !(content[0] instanceof Node);
  const attributes = isGiven ? content.shift() : {};
  const element = document.createElement(name);
  if (classes.length) element.className = classes.join(' ');
  for (const [key, value] of Object.entries(attributes)) {
    if (value == null || value === false) continue;
    if (key.startsWith('on')) element.addEventListener(key.slice(2), value);
    else if (key === 'style') {
      for (const [property, text] of Object.entries(value)) element.style.setProperty(property, text);
    } else if (key === 'class') element.className = `${element.className} ${value}`.trim();
    else element.setAttribute(key === 'label' ? 'aria-label' : key, value === true ? '' : plain(String(value)));
  }
  append(element, content);
  return element;
}

/** Append texts and elements, without empty ones. */
function append(element, content) {
  for (const each of content.flat(Infinity)) {
    if (each != null && each !== false && each !== '')
      element.append(each instanceof Node ? each : plain(String(each)));
  }
}

function plain(text) {
  return text.replace(INVISIBLE, '');
}

function list(items, kind) {
  return items?.length
    ? make(
        'ul',
        { class: kind },
        items.map((each) => make('li', each)),
      )
    : null;
}

/** A text with parts in backticks as code. */
function prose(text) {
  return text.split('`').map((part, index) => (index % 2 ? make('code', part) : part));
}

/** Terms with their descriptions. */
function terms(kind, rows, ...more) {
  return make(kind, rows.map(([name, ...content]) => [make('dt', name), make('dd', ...content)]), ...more);
}

function tableOf(kind, columns, rows) {
  const head = columns.map((each) => make('th', { scope: 'col' }, each));
  return make(
    'table',
    { class: kind },
    make('thead', make('tr', head)),
    make(
      'tbody',
      rows.map((cells) =>
        make(
          'tr',
          cells.map((cell) => make('td', cell)),
        ),
      ),
    ),
  );
}

function quiet(...content) {
  return make('span.quiet', ...content);
}

/** Text for screen readers only. */
function unseen(text) {
  return make('span.unseen', text);
}
