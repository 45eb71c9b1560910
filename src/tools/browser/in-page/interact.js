// Functions that find, measure and change elements of a page. Runs in the page (see documents.ts); `elements` is the object that
// elements.js evaluates to. A `problem` continues a sentence that begins with the element: "[e12] is disabled."
;(elements) => {
  const { NOT_TYPED_INTO, clean, find, isDisabled, describe } = elements
  // Inputs whose value is set, because typing into them goes through the browser's own widgets.
  const SET_BY_VALUE = new Set(['date', 'time', 'datetime-local', 'month', 'week', 'color', 'range'])
  const FRAME_MS = 16

  const nextFrame = () => new Promise((resolve) => setTimeout(resolve, FRAME_MS))

  const showInView = (element) => element.scrollIntoView({ block: 'center', inline: 'center', behavior: 'instant' })

  const problemOf = (element) => {
    if (!element) return 'gone'
    return isDisabled(element) ? `is disabled: ${describe(element)}` : undefined
  }

  // Whether a click on `hit` is a click on `element`: on the element itself, its content or its label.
  const sharesClicks = (hit, element) => {
    for (let at = hit; at; at = at.assignedSlot ?? at.parentNode ?? at.host) {
      if (at === element) return true
      if (at.tagName === 'LABEL' && at.control === element) return true
    }
    return element.contains(hit)
  }

  const elementAt = (x, y) => {
    let hit = document.elementFromPoint(x, y)
    while (hit?.shadowRoot) {
      const inner = hit.shadowRoot.elementFromPoint(x, y)
      if (!inner || inner === hit) break
      hit = inner
    }
    return hit
  }

  const dispatchChange = (element) => {
    element.dispatchEvent(new Event('input', { bubbles: true, composed: true }))
    element.dispatchEvent(new Event('change', { bubbles: true }))
  }

  // By the built-in setter: frameworks replace the element's own.
  const setValue = (element, value) => {
    Object.getOwnPropertyDescriptor(HTMLInputElement.prototype, 'value').set.call(element, value)
    dispatchChange(element)
  }

  // Waits until an animation or a scroll no longer moves the element. Returns its last box.
  const stableBox = async (element) => {
    let before = element.getBoundingClientRect()
    for (let tries = 0; tries < 20; tries++) {
      await nextFrame()
      const now = element.getBoundingClientRect()
      const still =
        now.x === before.x && now.y === before.y && now.width === before.width && now.height === before.height
      before = now
      if (still && tries > 0) break
    }
    return before
  }

  // The center of the element's visible part. `force`: also if another element covers it.
  const locate = async ({ ref, force }) => {
    const element = find(ref)
    const problem = problemOf(element)
    if (problem) return { problem }
    showInView(element)
    const whole = await stableBox(element)
    const box = [...element.getClientRects()].find((rect) => rect.width > 0 && rect.height > 0)
    if (!box) return { problem: 'is not visible' }
    const [left, right] = [Math.max(box.left, 0), Math.min(box.right, innerWidth)]
    const [top, bottom] = [Math.max(box.top, 0), Math.min(box.bottom, innerHeight)]
    if (right <= left || bottom <= top) return { problem: 'can’t be scrolled into view' }
    const [x, y] = [(left + right) / 2, (top + bottom) / 2]
    const hit = elementAt(x, y)
    if (!force && hit && !sharesClicks(hit, element)) {
      const cover = hit.closest('dialog,[role=dialog],[role=alertdialog]') ?? hit
      return { problem: `is covered by another element: ${describe(cover)}` }
    }
    return { x, y, width: whole.width, height: whole.height, left: whole.left, top: whole.top }
  }

  const typingProblem = (element, type) => {
    if (element.readOnly) return 'is read-only'
    if (element.tagName === 'SELECT') return 'is a drop-down list: use action "select"'
    if (type === 'file') return 'takes a file: use action "upload"'
    const isField = ['INPUT', 'TEXTAREA'].includes(element.tagName) || element.isContentEditable
    return isField && !NOT_TYPED_INTO.has(type) ? undefined : `can’t be typed into: ${describe(element)}`
  }

  const selectContent = (element) => {
    const range = document.createRange()
    range.selectNodeContents(element)
    const selection = element.getRootNode().getSelection?.() ?? getSelection()
    selection.removeAllRanges()
    selection.addRange(range)
  }

  // Focuses the element and selects its content, so that typing replaces it. `done`: the value was set instead.
  const focus = ({ ref, text }) => {
    const element = find(ref)
    const type = element?.tagName === 'INPUT' ? element.type : ''
    const problem = problemOf(element) ?? typingProblem(element, type)
    if (problem) return { problem }
    showInView(element)
    element.focus()
    if (SET_BY_VALUE.has(type)) {
      setValue(element, text)
      return element.value === text
        ? { done: true }
        : { problem: `does not accept ${JSON.stringify(text)}: its type is ${type}` }
    }
    if (element.isContentEditable) selectContent(element)
    else element.select()
    return { empty: (element.isContentEditable ? element.textContent.trim() : element.value) === '' }
  }

  // By label, then by value, then by label in any case.
  const optionFor = (options, wanted) =>
    options.find((option) => clean(option.label) === wanted) ??
    options.find((option) => option.value === wanted) ??
    options.find((option) => clean(option.label).toLowerCase() === wanted.toLowerCase())

  const select = ({ ref, text }) => {
    const element = find(ref)
    const problem = problemOf(element)
    if (problem) return { problem }
    if (element.tagName !== 'SELECT')
      return { problem: `is not a list of options: ${describe(element)}. Click it, then click the option` }
    const lines = element.multiple ? text.split('\n') : [text]
    const wanted = lines.map((line) => line.trim()).filter((line) => !element.multiple || line)
    const options = [...element.options]
    const found = wanted.map((each) => optionFor(options, each))
    const missing = wanted.find((_, at) => !found[at] || found[at].disabled)
    if (missing !== undefined || found.length === 0) {
      const labels = options.slice(0, 50).map((option) => JSON.stringify(clean(option.label, 60)))
      return { problem: `has no option ${JSON.stringify(missing ?? text)}; its options are ${labels.join(', ')}` }
    }
    for (const option of options) option.selected = found.includes(option)
    element.focus()
    dispatchChange(element)
    return { chosen: found.map((option) => clean(option.label, 100)) }
  }

  const scrollerAt = (x, y) => {
    for (let at = elementAt(x, y); at && at !== document.body; at = at.parentElement ?? at.getRootNode().host) {
      const style = getComputedStyle(at)
      if (/auto|scroll/.test(style.overflowY) && at.scrollHeight > at.clientHeight + 1) return at
    }
    return document.scrollingElement ?? document.documentElement
  }

  // `direction`: up or down by a page, or to the top or bottom. Scrolls what is in the middle of the view.
  const scroll = (direction) => {
    const scroller = scrollerAt(innerWidth / 2, innerHeight / 2)
    const page = Math.max(100, scroller.clientHeight * 0.9)
    const top = {
      top: 0,
      bottom: scroller.scrollHeight,
      up: scroller.scrollTop - page,
      down: scroller.scrollTop + page,
    }[direction]
    scroller.scrollTo({ top, behavior: 'instant' })
    const end = Math.max(0, scroller.scrollHeight - scroller.clientHeight)
    return { at: Math.round(scroller.scrollTop), end: Math.round(end) }
  }

  // Resolves when the document has not changed for `quiet` milliseconds, or after `most` milliseconds.
  const settled = ({ quiet, most }) =>
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
    })

  // Where the content of a frame element begins within this document.
  const frameOrigin = (ref) => {
    const element = find(ref)
    if (!element) return { x: 0, y: 0 }
    const box = element.getBoundingClientRect()
    const style = getComputedStyle(element)
    return {
      x: box.left + element.clientLeft + Number.parseFloat(style.paddingLeft),
      y: box.top + element.clientTop + Number.parseFloat(style.paddingTop),
    }
  }

  return {
    locate,
    focus,
    select,
    scroll,
    settled,
    frameOrigin,

    // The element itself, for protocol calls that need an object.
    element: (ref) => find(ref) ?? null,

    reveal: (ref) => {
      const element = find(ref)
      if (!element) return { problem: 'gone' }
      showInView(element)
      return {}
    },

    // `status`: the HTTP status of the document, 0 if unknown.
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
  }
}
