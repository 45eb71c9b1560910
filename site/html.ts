/** HTML by tagged template: inserted values are escaped, unless they are Html. Also renders the short Markdown in API descriptions. */

export interface Html {
  readonly html: string
}

/** Marks text as HTML, so it is not escaped. */
export function raw(text: string): Html {
  return { html: text }
}

type Piece = Html | string | number | undefined | readonly Piece[]

export function html(strings: TemplateStringsArray, ...pieces: readonly Piece[]): Html {
  return { html: strings.reduce((text, part, i) => `${text}${render(pieces[i - 1])}${part}`) }
}

function render(piece: Piece): string {
  if (piece === undefined) return ''
  if (typeof piece === 'string') return escaped(piece)
  if (typeof piece === 'number') return String(piece)
  return 'html' in piece ? piece.html : piece.map(render).join('')
}

function escaped(text: string): string {
  return text.replace(/[&<>"']/g, (character) => ESCAPES[character] ?? character)
}

const ESCAPES: Readonly<Record<string, string>> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
  "'": '&#39;',
}

/** Renders paragraphs, lists of `- ` lines, and `code`. */
export function prose(markdown: string): Html {
  const blocks = markdown.split('\n\n').map((block) => {
    if (!block.startsWith('- ')) return html`<p>${inline(block)}</p>`
    const items = block.split('\n').map((line) => html`<li>${inline(line.slice(2))}</li>`)
    return html`<ul>${items}</ul>`
  })
  return html`${blocks}`
}

export function inline(text: string): Html {
  return html`${text.split('`').map((part, i) => (i % 2 === 1 ? html`<code>${part}</code>` : part))}`
}
