// What runs in a page, in an isolated world of its own: the page's scripts see none of it and can't change its built-ins,
// only the document they share. Heavy work stays here, inside the sandbox: Errand is handed lines of text, bounded.
// (Accessibility.getFullAXTree was measured: 20 MB and 3.4 s for 5,000 paragraphs; this walk: 0.1 s and the text alone.)
// Roles and names are Chromium's own (`computedRole`, `computedName`).
//
// Evaluates to an object of functions. Elements are known by numbers: the same element keeps its number, none is used twice.
;(() => {
  const MAX_ELEMENTS = 20_000
  const MAX_TEXT = 1_000
  const elements = new Map() // number → WeakRef
  const numbers = new WeakMap()

  const FLAT = new Set([
    'rowgroup',
    'generic',
    'none',
    'presentation',
    '',
    'strong',
    'emphasis',
    'code',
    'mark',
    'superscript',
    'subscript',
    'time',
    'insertion',
    'deletion',
    'term',
    'abbr',
  ])
  const NAMED_BY_CONTENT = new Set([
    'link',
    'button',
    'heading',
    'option',
    'tab',
    'menuitem',
    'menuitemcheckbox',
    'menuitemradio',
    'treeitem',
    'checkbox',
    'radio',
    'switch',
    'tooltip',
    'summary',
  ])
  const ACTIVE = new Set([
    'link',
    'button',
    'textbox',
    'searchbox',
    'combobox',
    'listbox',
    'option',
    'checkbox',
    'radio',
    'switch',
    'slider',
    'spinbutton',
    'tab',
    'menuitem',
    'menuitemcheckbox',
    'menuitemradio',
    'treeitem',
    'summary',
    'iframe',
    'canvas',
    'image',
    'video',
    'audio',
    'file',
    'date',
    'color',
    'dialog',
    'alertdialog',
  ])
  // What ARIA has no role for.
  const OWN_TAGS = { CANVAS: 'canvas', VIDEO: 'video', AUDIO: 'audio' }
  const OWN_ROLES = { img: 'image' }
  const SKIPPED = new Set(['SCRIPT', 'STYLE', 'NOSCRIPT', 'TEMPLATE', 'HEAD', 'META', 'LINK', 'BR', 'WBR'])
  const TYPED_INPUTS = new Set(['date', 'time', 'datetime-local', 'month', 'week', 'color', 'range'])
  const NOT_TYPED_INTO = new Set(['checkbox', 'radio', 'button', 'submit', 'reset', 'image', 'file', 'hidden'])

  const clean = (text, most = MAX_TEXT) => {
    const flat = text.replace(/[\u0000-\u0020\u007f-\u00a0\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff]+/g, ' ').trim()
    return flat.length > most ? `${flat.slice(0, most)}…` : flat
  }

  const numberOf = (element, fresh) => {
    const known = numbers.get(element)
    if (known !== undefined) return known
    const number = fresh.next++
    numbers.set(element, number)
    elements.set(number, new WeakRef(element))
    return number
  }

  const roleOf = (element) => {
    if (element.tagName === 'INPUT' && element.type === 'file') return 'file'
    if (element.tagName === 'SUMMARY') return 'summary'
    if (element.tagName === 'IFRAME' || element.tagName === 'FRAME') return 'iframe'
    const role = element.computedRole || element.getAttribute('role') || OWN_TAGS[element.tagName] || ''
    if (role === '' && element.tagName === 'INPUT') return element.type === 'color' ? 'color' : 'date'
    return OWN_ROLES[role] ?? (/^[A-Z]/.test(role) ? 'generic' : role)
  }

  const nameOf = (element) =>
    element.computedName || aria(element, 'label') || element.labels?.[0]?.textContent || element.placeholder || ''

  const isShown = (element, style) => style.display === 'contents' || element.checkVisibility()

  const aria = (element, name) => element.getAttribute(`aria-${name}`)

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

  const activeElement = () => {
    let active = document.activeElement
    while (active?.shadowRoot?.activeElement) active = active.shadowRoot.activeElement
    return active === document.body ? null : active
  }

  // A tree of { role, name, states, ref, value, children }, texts as strings among the children.
  const build = (fresh) => {
    let left = MAX_ELEMENTS
    const focused = activeElement()

    const walk = (node, into, quiet, pointer) => {
      if (node.nodeType === Node.TEXT_NODE) {
        if (!quiet && node.data.trim() !== '') into.push(node.data)
        else if (!quiet && into.length > 0 && typeof into.at(-1) === 'string') into.push(' ')
        return
      }
      if (node.nodeType !== Node.ELEMENT_NODE || SKIPPED.has(node.tagName)) return
      if (left-- <= 0) return
      const style = getComputedStyle(node)
      if (!isShown(node, style)) return
      const seen = style.visibility === 'visible'
      const role = roleOf(node)
      const points = style.cursor === 'pointer' && !pointer
      const active =
        ACTIVE.has(role) ||
        points ||
        (node.isContentEditable && !node.parentElement?.isContentEditable) ||
        (node.hasAttribute('tabindex') && node.tabIndex >= 0)
      const below = (list, hush) => {
        for (const child of childrenOf(node)) walk(child, list, hush, pointer || style.cursor === 'pointer')
      }
      if (!seen || (FLAT.has(role) && !active)) {
        const block = seen && !style.display.startsWith('inline') && style.display !== 'contents'
        if (block) into.push('\n')
        // What a label says is the name of its control.
        below(into, quiet || !seen || (node.tagName === 'LABEL' && node.control !== null))
        if (block) into.push('\n')
        return
      }
      const name = clean(role === 'row' || role === 'document' ? '' : nameOf(node), 300)
      if (role === 'image' && name === '' && !points) return
      const entry = {
        role: FLAT.has(role) ? 'clickable' : role,
        name,
        states: statesOf(node, role, focused),
        ref: active ? numberOf(node, fresh) : undefined,
        value: currentValue(node, role),
        url: targetOf(node),
        children: [],
      }
      into.push(entry)
      if (role === 'iframe') entry.frame = entry.ref
      else if (node.tagName === 'SELECT' && !node.multiple && node.size < 2) {
        entry.options = [...node.options].slice(0, 30).map((option) => clean(option.label, 60))
        if (node.options.length > 30) entry.options.push(`… ${node.options.length - 30} more`)
      } else if (
        role !== 'textbox' &&
        role !== 'searchbox' &&
        node.tagName !== 'TEXTAREA' &&
        node.tagName !== 'INPUT'
      ) {
        below(entry.children, quiet || (name !== '' && NAMED_BY_CONTENT.has(role)))
      }
    }

    const root = []
    if (document.documentElement) walk(document.body ?? document.documentElement, root, false, false)
    return { root, cut: left < 0 }
  }

  // Neighbouring texts become one; line breaks between blocks part them.
  const joined = (children) => {
    const out = []
    let text = ''
    const flush = () => {
      const said = clean(text)
      if (said !== '') out.push(said)
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

  const CELLS = new Set(['cell', 'gridcell', 'columnheader', 'rowheader'])

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
    const show = (children, depth) => {
      for (const child of joined(children)) {
        if (typeof child === 'string') {
          put(depth, `text: ${child}`)
          continue
        }
        const below = joined(child.children)
        let line = child.role
        if (child.name !== '') line += ` ${JSON.stringify(child.name)}`
        for (const state of child.states) line += ` [${state}]`
        if (child.ref !== undefined) line += ` [e${child.ref}]`
        if (child.url) line += ` → ${child.url}`
        if (child.value) line += `: ${child.value}`
        if (child.options) line += ` (options: ${child.options.join(' | ')})`
        const flatRow =
          child.role === 'row' &&
          below.length > 0 &&
          below.every(
            (cell) =>
              typeof cell !== 'string' &&
              CELLS.has(cell.role) &&
              cell.ref === undefined &&
              joined(cell.children).every((part) => typeof part === 'string'),
          )
        if (flatRow) {
          put(depth, `${line}: ${below.map((cell) => joined(cell.children).join(' ')).join(' | ')}`)
        } else if (below.length === 1 && typeof below[0] === 'string') {
          put(depth, below[0] === child.name ? line : `${line}: ${below[0]}`)
        } else if (below.length > 0 || child.name !== '' || child.ref !== undefined || child.value) {
          const written = put(depth, line)
          if (written && child.frame !== undefined)
            frames.push({ line: lines.length - 1, ref: child.frame, depth: depth + 1 })
          show(child.children, depth + 1)
        }
      }
    }
    show(root, 0)
    return { lines, frames, missing }
  }

  const find = (number) => {
    const element = elements.get(number)?.deref()
    return element?.isConnected ? element : undefined
  }

  const describe = (element) => {
    const name = clean(nameOf(element) || element.textContent || '', 60)
    return `${roleOf(element) || element.tagName.toLowerCase()}${name ? ` ${JSON.stringify(name)}` : ''}`
  }

  const turn = () => new Promise((resolve) => setTimeout(resolve, 16))

  // What an element shares its clicks with: itself, what is in it, its label.
  const belongs = (hit, element) => {
    for (let at = hit; at; at = at.assignedSlot ?? at.parentNode ?? at.host) {
      if (at === element) return true
      if (at.tagName === 'LABEL' && at.control === element) return true
    }
    return element.contains(hit)
  }

  const hitAt = (x, y) => {
    let hit = document.elementFromPoint(x, y)
    while (hit?.shadowRoot) {
      const inner = hit.shadowRoot.elementFromPoint(x, y)
      if (!inner || inner === hit) break
      hit = inner
    }
    return hit
  }

  const isDisabled = (element) => element.matches(':disabled') || element.closest('[aria-disabled="true"]') !== null

  const setNatively = (element, value) => {
    const prototype =
      element.tagName === 'TEXTAREA'
        ? HTMLTextAreaElement
        : element.tagName === 'SELECT'
          ? HTMLSelectElement
          : HTMLInputElement
    Object.getOwnPropertyDescriptor(prototype.prototype, 'value').set.call(element, value)
    changed(element)
  }

  const changed = (element) => {
    element.dispatchEvent(new Event('input', { bubbles: true, composed: true }))
    element.dispatchEvent(new Event('change', { bubbles: true }))
  }

  const scrollerAt = (x, y) => {
    for (let at = hitAt(x, y); at && at !== document.body; at = at.parentElement ?? at.getRootNode().host) {
      const style = getComputedStyle(at)
      if (/auto|scroll/.test(style.overflowY) && at.scrollHeight > at.clientHeight + 1) return at
    }
    return document.scrollingElement ?? document.documentElement
  }

  return {
    snapshot: ({ next, room }) => {
      const fresh = { next }
      const { root, cut } = build(fresh)
      const rendered = render(root, room)
      for (const [number, held] of elements) if (!held.deref()?.isConnected) elements.delete(number)
      return { ...rendered, cut: cut || rendered.missing > 0, next: fresh.next }
    },

    // The element itself, for calls of the protocol that want one.
    element: (ref) => find(ref) ?? null,

    // Brings it into view and says where to click; `problem` in words that follow "e12 …".
    place: async ({ ref, force }) => {
      const element = find(ref)
      if (!element) return { problem: 'gone' }
      if (isDisabled(element)) return { problem: `is disabled: ${describe(element)}` }
      element.scrollIntoView({ block: 'center', inline: 'center', behavior: 'instant' })
      let before = element.getBoundingClientRect()
      for (let tries = 0; tries < 20; tries++) {
        await turn()
        const now = element.getBoundingClientRect()
        const still =
          now.x === before.x && now.y === before.y && now.width === before.width && now.height === before.height
        before = now
        if (still && tries > 0) break
      }
      const box = [...element.getClientRects()].find((rect) => rect.width > 0 && rect.height > 0)
      if (!box) return { problem: 'is not visible' }
      const left = Math.max(box.left, 0),
        right = Math.min(box.right, innerWidth)
      const top = Math.max(box.top, 0),
        bottom = Math.min(box.bottom, innerHeight)
      if (right <= left || bottom <= top) return { problem: 'is outside of what can be scrolled to' }
      const x = (left + right) / 2,
        y = (top + bottom) / 2
      const hit = hitAt(x, y)
      if (!force && hit && !belongs(hit, element)) {
        const near = hit.closest('dialog,[role=dialog],[role=alertdialog]') ?? hit
        return { problem: `is covered by another element: ${describe(near)}` }
      }
      return { x, y, width: before.width, height: before.height, left: before.left, top: before.top }
    },

    // Where a frame's content begins within this one.
    frameOrigin: (ref) => {
      const element = find(ref)
      if (!element) return { x: 0, y: 0 }
      const box = element.getBoundingClientRect()
      const style = getComputedStyle(element)
      return {
        x: box.left + element.clientLeft + Number.parseFloat(style.paddingLeft),
        y: box.top + element.clientTop + Number.parseFloat(style.paddingTop),
      }
    },

    // Makes it ready for typing, its content selected so that typing replaces it. `done`: the value was set, nothing is to be typed.
    focus: ({ ref, text }) => {
      const element = find(ref)
      if (!element) return { problem: 'gone' }
      if (isDisabled(element)) return { problem: `is disabled: ${describe(element)}` }
      if (element.readOnly) return { problem: 'is read-only' }
      const type = element.tagName === 'INPUT' ? element.type : ''
      if (element.tagName === 'SELECT') return { problem: 'is a list to choose from: use action "select"' }
      if (type === 'file') return { problem: 'takes a file: use action "upload"' }
      if (
        NOT_TYPED_INTO.has(type) ||
        (!['INPUT', 'TEXTAREA'].includes(element.tagName) && !element.isContentEditable)
      ) {
        return { problem: `can't be typed into: ${describe(element)}` }
      }
      element.scrollIntoView({ block: 'center', inline: 'center', behavior: 'instant' })
      element.focus()
      if (TYPED_INPUTS.has(type)) {
        setNatively(element, text)
        return element.value === text
          ? { done: true }
          : { problem: `does not take ${JSON.stringify(text)}: it is of type ${type}` }
      }
      if (element.isContentEditable) {
        const range = document.createRange()
        range.selectNodeContents(element)
        const selection = element.getRootNode().getSelection?.() ?? getSelection()
        selection.removeAllRanges()
        selection.addRange(range)
      } else element.select()
      return { empty: (element.isContentEditable ? element.textContent.trim() : element.value) === '' }
    },

    select: ({ ref, text }) => {
      const element = find(ref)
      if (!element) return { problem: 'gone' }
      if (isDisabled(element)) return { problem: `is disabled: ${describe(element)}` }
      if (element.tagName !== 'SELECT')
        return { problem: `is no list of options: ${describe(element)}. Click it, then click the option` }
      const wanted = element.multiple
        ? text
            .split('\n')
            .map((part) => part.trim())
            .filter(Boolean)
        : [text.trim()]
      const options = [...element.options]
      const found = wanted.map(
        (want) =>
          options.find((option) => clean(option.label) === want) ??
          options.find((option) => option.value === want) ??
          options.find((option) => clean(option.label).toLowerCase() === want.toLowerCase()),
      )
      const missing = wanted.find((_, at) => !found[at] || found[at].disabled)
      if (missing !== undefined || found.length === 0) {
        return {
          problem: `has no option ${JSON.stringify(missing ?? text)}; its options are ${options
            .slice(0, 50)
            .map((option) => JSON.stringify(clean(option.label, 60)))
            .join(', ')}`,
        }
      }
      for (const option of options) option.selected = found.includes(option)
      element.focus()
      changed(element)
      return { chosen: found.map((option) => clean(option.label, 100)) }
    },

    reveal: (ref) => {
      const element = find(ref)
      if (!element) return { problem: 'gone' }
      element.scrollIntoView({ block: 'center', inline: 'center', behavior: 'instant' })
      return {}
    },

    scroll: (where) => {
      const scroller = scrollerAt(innerWidth / 2, innerHeight / 2)
      const page = Math.max(100, scroller.clientHeight * 0.9)
      const top =
        where === 'top'
          ? 0
          : where === 'bottom'
            ? scroller.scrollHeight
            : scroller.scrollTop + (where === 'up' ? -page : page)
      scroller.scrollTo({ top, behavior: 'instant' })
      const end = Math.max(0, scroller.scrollHeight - scroller.clientHeight)
      return { at: Math.round(scroller.scrollTop), end: Math.round(end) }
    },

    about: () => {
      const [entry] = performance.getEntriesByType('navigation')
      return { status: entry?.responseStatus ?? 0, scrolled: { x: scrollX, y: scrollY } }
    },

    takesFiles: (ref) => {
      const element = find(ref)
      return element?.tagName === 'INPUT' && element.type === 'file'
    },

    hasText: (text) => clean(document.body?.textContent ?? '', 10_000_000).includes(clean(text)),

    size: () => ({
      width: Math.ceil(Math.max(document.documentElement.scrollWidth, innerWidth)),
      height: Math.ceil(Math.max(document.documentElement.scrollHeight, document.body?.scrollHeight ?? 0, innerHeight)),
    }),

    // Resolves when the document has not changed for a while, or after `most` milliseconds.
    settled: ({ quiet, most }) =>
      new Promise((resolve) => {
        let timer = setTimeout(finish, quiet)
        const limit = setTimeout(finish, most)
        const observer = new MutationObserver(() => {
          clearTimeout(timer)
          timer = setTimeout(finish, quiet)
        })
        function finish() {
          observer.disconnect()
          clearTimeout(timer)
          clearTimeout(limit)
          resolve(true)
        }
        observer.observe(document, { subtree: true, childList: true, attributes: true, characterData: true })
      }),
  }
})()
