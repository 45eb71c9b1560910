// A page as lines of text: a tree of roles, names, states and values. Runs in the page (see documents.ts); `elements` is the
// object that elements.js evaluates to. The walk stays in the page because the alternative is slow: Chromium's
// Accessibility.getFullAXTree took 3.4 s and 20 MB for 5,000 paragraphs, this walk 0.1 s.
;(elements) => {
  const { NOT_TYPED_INTO, clean, numberOf, aria, roleOf, nameOf } = elements
  const MAX_ELEMENTS = 20_000

  // Roles that are left out of the tree: only their content is shown.
  const FLAT = new Set([
    '',
    ...'rowgroup generic none presentation strong emphasis code mark superscript subscript time insertion deletion term abbr'.split(
      ' ',
    ),
  ])
  // Roles that the content of an element names.
  const NAMED_BY_CONTENT = new Set(
    `link button heading option tab menuitem menuitemcheckbox menuitemradio treeitem checkbox radio
     switch tooltip summary`.split(/\s+/),
  )
  // Roles of elements that get a reference.
  const ACTIVE = new Set(
    `link button textbox searchbox combobox listbox option checkbox radio switch slider spinbutton tab
     menuitem menuitemcheckbox menuitemradio treeitem summary iframe canvas image video audio file date
     color dialog alertdialog`.split(/\s+/),
  )
  const CELLS = new Set(['cell', 'gridcell', 'columnheader', 'rowheader'])
  const SKIPPED = new Set(['SCRIPT', 'STYLE', 'NOSCRIPT', 'TEMPLATE', 'HEAD', 'META', 'LINK', 'BR', 'WBR'])

  const statesOf = (element, role, focused) => {
    const states = []
    const flag = (name, value) => {
      if (value === true || value === 'true') states.push(name)
      else if (value === 'mixed') states.push(`${name}=mixed`)
    }
    if (role === 'checkbox' || role === 'radio' || role === 'switch' || role.startsWith('menuitem')) {
      flag('checked', element.indeterminate ? 'mixed' : (element.checked ?? aria(element, 'checked')))
    }
    flag('disabled', element.matches(':disabled') || aria(element, 'disabled'))
    if (role === 'summary') states.push(element.parentElement?.open ? 'expanded' : 'collapsed')
    else if (aria(element, 'expanded')) states.push(aria(element, 'expanded') === 'true' ? 'expanded' : 'collapsed')
    flag('selected', role === 'option' && 'selected' in element ? element.selected : aria(element, 'selected'))
    flag('pressed', aria(element, 'pressed'))
    flag('required', element.required || aria(element, 'required'))
    flag('readonly', (element.readOnly && element.tagName !== 'BUTTON') || aria(element, 'readonly'))
    flag('invalid', aria(element, 'invalid'))
    flag('multiple', element.tagName === 'SELECT' && element.multiple)
    flag('focused', element === focused)
    if (role === 'heading')
      states.push(`level=${aria(element, 'level') ?? /^H(\d)$/.exec(element.tagName)?.[1] ?? '2'}`)
    return states
  }

  const currentValue = (element, role) => {
    if (element.tagName === 'SELECT')
      return [...element.selectedOptions].map((option) => clean(option.label, 100)).join(', ')
    if (element.tagName === 'TEXTAREA') return clean(element.value)
    if (element.tagName === 'INPUT') {
      if (element.type === 'password') return '•'.repeat(Math.min(element.value.length, 12))
      if (element.type === 'file') return [...element.files].map((file) => clean(file.name, 100)).join(', ')
      return NOT_TYPED_INTO.has(element.type) ? '' : clean(element.value)
    }
    if (role === 'progressbar' || role === 'meter' || role === 'slider' || role === 'spinbutton') {
      return clean(String(aria(element, 'valuetext') ?? aria(element, 'valuenow') ?? element.value ?? ''), 100)
    }
    return element.isContentEditable && role === 'textbox' ? clean(element.textContent) : ''
  }

  const targetOf = (element) => {
    if (element.tagName !== 'A' || !element.href) return ''
    try {
      const url = new URL(element.href)
      return clean(url.origin === location.origin ? url.pathname + url.search + url.hash : url.href, 120)
    } catch {
      return ''
    }
  }

  const childrenOf = (element) => {
    if (element.shadowRoot) return element.shadowRoot.childNodes
    if (element.tagName === 'SLOT') {
      const assigned = element.assignedNodes()
      if (assigned.length > 0) return assigned
    }
    return element.childNodes
  }

  // Inside shadow roots as well. Null if nothing has the focus.
  const activeElement = () => {
    let active = document.activeElement
    while (active?.shadowRoot?.activeElement) active = active.shadowRoot.activeElement
    return active === document.body ? null : active
  }

  const optionsOf = (select) => {
    const options = [...select.options].slice(0, 30).map((option) => clean(option.label, 60))
    if (select.options.length > 30) options.push(`… ${select.options.length - 30} more`)
    return options
  }

  const isActive = (node, role) =>
    ACTIVE.has(role) ||
    (node.isContentEditable && !node.parentElement?.isContentEditable) ||
    (node.hasAttribute('tabindex') && node.tabIndex >= 0)

  const isDropdown = (node) => node.tagName === 'SELECT' && !node.multiple && node.size < 2

  const hasContent = (node, role) =>
    !isDropdown(node) &&
    !['iframe', 'textbox', 'searchbox'].includes(role) &&
    node.tagName !== 'TEXTAREA' &&
    node.tagName !== 'INPUT'

  // Appends the entry of a node to `list`, its texts as strings and the ends of blocks as '\n'. Takes one from
  // `budget.left` for each element. `quiet`: texts are already part of a name. `pointer`: an ancestor is clickable.
  const walk = (node, list, context) => {
    const { quiet, pointer, budget, fresh, focused } = context
    if (node.nodeType === Node.TEXT_NODE) {
      if (!quiet && node.data.trim() !== '') list.push(node.data)
      else if (!quiet && list.length > 0 && typeof list.at(-1) === 'string') list.push(' ')
      return
    }
    if (node.nodeType !== Node.ELEMENT_NODE || SKIPPED.has(node.tagName)) return
    if (budget.left-- <= 0) return
    const style = getComputedStyle(node)
    if (style.display !== 'contents' && !node.checkVisibility()) return
    const visible = style.visibility === 'visible'
    const role = roleOf(node)
    const clickable = style.cursor === 'pointer' && !pointer
    const active = clickable || isActive(node, role)
    const walkChildren = (into, silent) => {
      const inner = { ...context, quiet: silent, pointer: pointer || style.cursor === 'pointer' }
      for (const child of childrenOf(node)) walk(child, into, inner)
    }
    if (!visible || (FLAT.has(role) && !active)) {
      const block = visible && !style.display.startsWith('inline') && style.display !== 'contents'
      if (block) list.push('\n')
      // The text of a label is the name of its control.
      walkChildren(list, quiet || !visible || (node.tagName === 'LABEL' && node.control !== null))
      if (block) list.push('\n')
      return
    }
    const name = clean(role === 'row' || role === 'document' ? '' : nameOf(node), 300)
    if (role === 'image' && name === '' && !clickable) return
    const entry = {
      role: FLAT.has(role) ? 'clickable' : role,
      name,
      states: statesOf(node, role, focused),
      ref: active ? numberOf(node, fresh) : undefined,
      isFrame: role === 'iframe',
      value: currentValue(node, role),
      url: targetOf(node),
      options: isDropdown(node) ? optionsOf(node) : undefined,
      children: [],
    }
    list.push(entry)
    if (hasContent(node, role)) walkChildren(entry.children, quiet || (name !== '' && NAMED_BY_CONTENT.has(role)))
  }

  const build = (fresh) => {
    const budget = { left: MAX_ELEMENTS }
    const root = []
    const start = document.body ?? document.documentElement
    if (start) walk(start, root, { quiet: false, pointer: false, budget, fresh, focused: activeElement() })
    return { root, truncated: budget.left < 0 }
  }

  // Joins neighboring texts. A line break between blocks separates them.
  const joined = (children) => {
    const out = []
    let text = ''
    const flush = () => {
      const cleaned = clean(text)
      if (cleaned !== '') out.push(cleaned)
      text = ''
    }
    for (const child of children) {
      if (child === '\n') flush()
      else if (typeof child === 'string') text += child
      else {
        flush()
        out.push(child)
      }
    }
    flush()
    return out
  }

  const headOf = (entry) => {
    let head = entry.role
    if (entry.name !== '') head += ` ${JSON.stringify(entry.name)}`
    for (const state of entry.states) head += ` [${state}]`
    if (entry.ref !== undefined) head += ` [e${entry.ref}]`
    if (entry.url) head += ` → ${entry.url}`
    if (entry.value) head += `: ${entry.value}`
    if (entry.options) head += ` (options: ${entry.options.join(' | ')})`
    return head
  }

  // A table row whose cells hold only text fits on one line.
  const isFlatRow = (entry, below) =>
    entry.role === 'row' &&
    below.length > 0 &&
    below.every(
      (cell) =>
        typeof cell !== 'string' &&
        CELLS.has(cell.role) &&
        cell.ref === undefined &&
        joined(cell.children).every((part) => typeof part === 'string'),
    )

  // `room`: characters. `frames`: the lines below which the content of a frame belongs.
  const render = (root, room) => {
    const lines = []
    const frames = []
    let left = room
    let missing = 0
    const put = (depth, text) => {
      const line = `${'  '.repeat(Math.min(depth, 20))}- ${text}`
      if (line.length + 1 > left) {
        left = 0
        missing++
        return false
      }
      left -= line.length + 1
      lines.push(line)
      return true
    }
    const showEntry = (entry, depth) => {
      const below = joined(entry.children)
      const head = headOf(entry)
      if (isFlatRow(entry, below)) {
        put(depth, `${head}: ${below.map((cell) => joined(cell.children).join(' ')).join(' | ')}`)
      } else if (below.length === 1 && typeof below[0] === 'string') {
        put(depth, below[0] === entry.name ? head : `${head}: ${below[0]}`)
      } else if (below.length > 0 || entry.name !== '' || entry.ref !== undefined || entry.value) {
        const written = put(depth, head)
        if (written && entry.isFrame && entry.ref !== undefined)
          frames.push({ line: lines.length - 1, ref: entry.ref, depth: depth + 1 })
        show(entry.children, depth + 1)
      }
    }
    const show = (children, depth) => {
      for (const child of joined(children)) {
        if (typeof child === 'string') put(depth, `text: ${child}`)
        else showEntry(child, depth)
      }
    }
    show(root, 0)
    return { lines, frames, missing }
  }

  return {
    snapshot: ({ next, room }) => {
      const fresh = { next }
      const { root, truncated } = build(fresh)
      const { lines, frames, missing } = render(root, room)
      elements.forgetRemoved()
      return { lines, frames, truncated: truncated || missing > 0, next: fresh.next }
    },
  }
}
