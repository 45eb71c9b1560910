// The search dialog. It is loaded when it is first opened. The build replaces the names of the imports by their addresses.
import MiniSearch from 'minisearch'
import passages from 'passages'
import { createSearch } from './search-index.js'

const search = createSearch(MiniSearch, passages)

const dialog = document.createElement('dialog')
dialog.className = 'search'
dialog.setAttribute('aria-label', 'Search the documentation')
const input = Object.assign(document.createElement('input'), {
  type: 'search',
  placeholder: 'Search the documentation',
  autocomplete: 'off',
})
for (const [name, value] of Object.entries({
  role: 'combobox',
  'aria-label': 'Search the documentation',
  'aria-expanded': 'true',
  'aria-controls': 'found',
  'aria-autocomplete': 'list',
})) {
  input.setAttribute(name, value)
}
const list = Object.assign(document.createElement('ul'), { id: 'found' })
list.setAttribute('role', 'listbox')
list.setAttribute('aria-label', 'Results')
const note = Object.assign(document.createElement('p'), { className: 'note' })
note.setAttribute('role', 'status')
dialog.append(input, list, note)
document.body.append(dialog)

let base = ''
let at = 0

input.addEventListener('input', () => {
  at = 0
  draw()
})
input.addEventListener('keydown', (event) => {
  const options = [...list.children]
  const step = { ArrowDown: 1, ArrowUp: -1 }[event.key]
  if (step && options.length > 0) {
    event.preventDefault()
    at = (at + step + options.length) % options.length
    mark()
  }
  if (event.key === 'Enter' && options[at]) {
    event.preventDefault()
    options[at].click()
  }
})
dialog.addEventListener('click', (event) => {
  const option = event.target.closest('li')
  if (option) location.assign(base + option.dataset.address)
  if (option || event.target === dialog) dialog.close()
})

function draw() {
  const words = input.value.trim()
  const found = words === '' ? [] : search(words, chosenLanguage()).slice(0, 12)
  list.replaceChildren(...found.map(option))
  note.textContent =
    words === ''
      ? 'Search for a task, a setting, an error, a method …'
      : found.length === 0
        ? 'No results. Try fewer or other words.'
        : ''
  mark()
}

function option(hit, i) {
  const item = document.createElement('li')
  item.id = `hit-${i}`
  item.setAttribute('role', 'option')
  item.dataset.address = hit.id
  const heading = Object.assign(document.createElement('strong'), { textContent: hit.heading })
  const place = hit.languages.length > 1 ? hit.languages.sort().reverse().join(' · ') : hit.page
  const page = Object.assign(document.createElement('span'), { textContent: place === hit.heading ? '' : place })
  item.append(heading, page, excerpt(hit))
  return item
}

// The text around the first word that was found.
function excerpt({ text, terms }) {
  const line = document.createElement('small')
  const places = terms.map((term) => text.toLowerCase().indexOf(term)).filter((place) => place >= 0)
  const begin = places.length > 0 ? Math.max(0, text.lastIndexOf(' ', Math.max(0, Math.min(...places) - 40))) : 0
  line.textContent = text.slice(begin, begin + 160).trim()
  return line
}

function chosenLanguage() {
  try {
    return localStorage.getItem('errand.docs.language')
  } catch {
    return null
  }
}

function mark() {
  for (const [i, item] of [...list.children].entries()) item.setAttribute('aria-selected', String(i === at))
  const chosen = list.children[at]
  if (chosen) {
    input.setAttribute('aria-activedescendant', chosen.id)
    chosen.scrollIntoView({ block: 'nearest' })
  } else input.removeAttribute('aria-activedescendant')
}

export function openSearch(from) {
  base = from
  if (!dialog.open) dialog.showModal()
  input.select()
  draw()
}
