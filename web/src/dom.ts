/** Small help with elements. Text is always set as text, never as markup. */
export function element<T extends HTMLElement>(id: string): T {
  const found = document.getElementById(id);
  if (found === null) throw new Error(`the page has no #${id}`);
  return found as T;
}

export function make(tag: string, className: string, ...children: (string | Node)[]): HTMLElement {
  const made = document.createElement(tag);
  if (className !== '') made.className = className;
  made.append(...children);
  return made;
}

export function field(form: HTMLFormElement, name: string): HTMLInputElement {
  return form.elements.namedItem(name) as HTMLInputElement;
}

export function say(target: HTMLElement, text: string, bad = false): void {
  target.textContent = text;
  target.classList.toggle('bad', bad);
}

export function removeButton(what: string, act: () => void): HTMLElement {
  const button = make('button', '', '✕');
  button.setAttribute('type', 'button');
  button.setAttribute('aria-label', `Remove ${what}`);
  button.addEventListener('click', act);
  return button;
}
