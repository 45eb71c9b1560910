// The interactive parts of a page: language tabs, Copy buttons, color theme, search, and the current section in the contents. This script
// adds all of them, so that a page without scripts shows no control that does not work.

const kept = {
  get: (name) => {
    try {
      return localStorage.getItem(name)
    } catch {
      return null
    }
  },
  set: (name, value) => {
    try {
      if (value === null) localStorage.removeItem(name)
      else localStorage.setItem(name, value)
    } catch {}
  },
}

function element(tag, properties = {}, ...children) {
  const made = document.createElement(tag)
  for (const [name, value] of Object.entries(properties)) {
    if (name in made) made[name] = value
    else made.setAttribute(name, value)
  }
  made.append(...children)
  return made
}

// Code in several languages: the chosen language is shown in every group of tabs.
const LANGUAGE = 'errand.docs.language'
const groups = []
for (const group of document.querySelectorAll('.tabs')) {
  const panels = [...group.querySelectorAll(':scope > figure')]
  if (panels.length < 2) continue
  const number = groups.length
  const list = element('div', { role: 'tablist', className: 'tablist', 'aria-label': 'Language' })
  const tabs = panels.map((panel, i) => {
    const tab = element('button', { type: 'button', role: 'tab', id: `tab-${number}-${i}` }, panel.dataset.language)
    panel.id = `panel-${number}-${i}`
    panel.setAttribute('role', 'tabpanel')
    panel.setAttribute('aria-labelledby', tab.id)
    tab.setAttribute('aria-controls', panel.id)
    tab.addEventListener('click', () => choose(panel.dataset.language, tab))
    return tab
  })
  list.addEventListener('keydown', (event) => {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key]
    if (!step) return
    event.preventDefault()
    const next = tabs[(tabs.indexOf(document.activeElement) + step + tabs.length) % tabs.length]
    next.focus()
    next.click()
  })
  list.append(...tabs)
  group.prepend(list)
  group.classList.add('live')
  groups.push({ tabs, panels })
}

function show(language) {
  for (const { tabs, panels } of groups) {
    const chosen = Math.max(
      panels.findIndex((panel) => panel.dataset.language === language),
      0,
    )
    for (const [i, tab] of tabs.entries()) {
      tab.setAttribute('aria-selected', String(i === chosen))
      tab.tabIndex = i === chosen ? 0 : -1
      panels[i].hidden = i !== chosen
    }
  }
}

// Keeps the clicked tab at its position on the screen, although the blocks above it may change their height.
function choose(language, tab) {
  const before = tab.getBoundingClientRect().top
  kept.set(LANGUAGE, language)
  show(language)
  scrollBy({ top: tab.getBoundingClientRect().top - before, behavior: 'instant' })
}
show(kept.get(LANGUAGE))

for (const figure of document.querySelectorAll('figure.code')) {
  const button = element('button', { type: 'button', className: 'copy' }, 'Copy')
  button.addEventListener('click', async () => {
    let result = 'Copied'
    try {
      await navigator.clipboard.writeText(figure.querySelector('code').textContent)
    } catch {
      result = 'Not allowed'
    }
    button.textContent = result
    setTimeout(() => {
      button.textContent = 'Copy'
    }, 1500)
  })
  figure.append(button)
}

// Color theme: system, light, dark. The console uses the same setting.
const THEMES = [null, 'light', 'dark']
const NAMES = ['System', 'Light', 'Dark']
const theme = element('button', { type: 'button', className: 'theme' })
const nameTheme = () => {
  const at = Math.max(THEMES.indexOf(kept.get('errand.theme')), 0)
  theme.textContent = NAMES[at]
  theme.setAttribute('aria-label', `Theme: ${NAMES[at]}`)
}
theme.addEventListener('click', () => {
  const next = THEMES[(THEMES.indexOf(kept.get('errand.theme')) + 1) % THEMES.length]
  kept.set('errand.theme', next)
  if (next === null) delete document.documentElement.dataset.theme
  else document.documentElement.dataset.theme = next
  nameTheme()
})
nameTheme()

const find = element('button', { type: 'button', className: 'find' }, 'Search', element('kbd', {}, '/'))
find.setAttribute('aria-keyshortcuts', '/')
const openSearch = async () => {
  const { openSearch } = await import('./search.js')
  openSearch(document.querySelector('.brand').getAttribute('href').replace('index.html', ''))
}
find.addEventListener('click', openSearch)
document.addEventListener('keydown', (event) => {
  const typing = event.target.closest?.('input, textarea, select')
  if (
    (event.key === '/' && !typing && !event.ctrlKey && !event.metaKey) ||
    (event.key === 'k' && (event.ctrlKey || event.metaKey))
  ) {
    event.preventDefault()
    openSearch()
  }
})
document.querySelector('.tools').append(find, theme)

// On wide screens the contents are always open, and the summary is hidden.
const menu = document.querySelector('.menu details')
const wide = matchMedia('(min-width: 60rem)')
const settle = () => {
  menu.open = wide.matches
}
wide.addEventListener('change', settle)
settle()
if (wide.matches) document.querySelector('.menu [aria-current]')?.scrollIntoView({ block: 'nearest' })

// Marks the current section in the contents.
const links = new Map([...document.querySelectorAll('.toc a, .menu li li a')].map((link) => [link.hash.slice(1), link]))
if (links.size > 0) {
  const marks = [...links.keys()].map((id) => document.getElementById(id)).filter(Boolean)
  let current
  const mark = () => {
    const line = 180
    const passed = marks.filter((each) => each.getBoundingClientRect().top < line)
    const next = links.get((passed.at(-1) ?? marks[0])?.id)
    if (next === current) return
    current?.classList.remove('here')
    next?.classList.add('here')
    current = next
    if (wide.matches) next?.scrollIntoView({ block: 'nearest' })
  }
  addEventListener('scroll', () => requestAnimationFrame(mark), { passive: true })
  mark()
}
