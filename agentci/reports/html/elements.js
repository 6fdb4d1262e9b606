// Elements whose text is always a text node: no text on this page is parsed as HTML.

/** Make an element; `on...` attributes are listeners, null and false omit an attribute. */
function make(name, attributes, ...content) {
  const element = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (key.startsWith('on')) element.addEventListener(key.slice(2), value);
    else if (value !== null && value !== false) element.setAttribute(key, plain(String(value)));
  }
  for (const each of content.flat(Infinity)) {
    if (each !== null && each !== undefined && each !== '')
      element.append(each instanceof Node ? each : plain(String(each)));
  }
  return element;
}

/** Remove invisible characters and those that change the reading order. */
function plain(text) {
  return text.replace(
    /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]/g,
    '',
  );
}

function list(items, kind) {
  return items?.length
    ? make(
        'ul',
        { class: kind },
        items.map((each) => make('li', {}, each)),
      )
    : null;
}

/** JSON that is rendered when it is opened. */
function onDemand(title, value) {
  const shown = make('pre', { tabindex: 0 });
  const fill = () => {
    if (!shown.firstChild) shown.append(plain(JSON.stringify(value(), null, 2)));
  };
  return make('details', { ontoggle: fill }, make('summary', {}, title), shown);
}
