/** The browser on ordinary pages: scripts, forms, redirects, frames, lists, tabs, dialogs. One Chromium per test. */
import { rm } from 'node:fs/promises'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type FakeProvider, openFakeProvider } from '../fake-provider.ts'
import { type Server, startServer } from '../support/server.ts'
import { drive, ref } from './drive.ts'
import { openSite, type Site } from './site.ts'

const SHOP = `<!doctype html><title>The shop</title>
<h1>Shop</h1><p>Hello <b>dear</b> guest, <a href=/moved>read the news</a>.</p>
<div hidden>never shown</div><p style="display:none">nor this</p>
<form action=/order>
  <label>Name <input name=name value=old required></label>
  <label>Word <input name=word type=password value=secret></label>
  <label>Day <input name=day type=date></label>
  <select name=size aria-label=Size><option value=s>Small<option value=l>Large</select>
  <label><input type=checkbox name=agree> Agree</label>
  <button>Order</button>
</form>
<button onclick="later.textContent = 'Loaded by script'">Load</button><p id=later></p>
<button disabled>Closed</button>
<span style="cursor:pointer" onclick="document.title = 'Spanned'">Not a real button</span>
<table><tr><th>Item<th>Price<tr><td>Pen<td>2</table>
<div id=host></div><script>
  host.attachShadow({ mode: 'open' }).innerHTML = '<button onclick="this.textContent = 1 + Number(this.textContent)">0</button>'
</script>
<iframe src=/inner title=Inner></iframe><iframe src="{other}/inner" title=Other></iframe>
<div style="height:3000px"></div><p>The end of the page</p>`

const INNER = `<p>In a frame</p><input aria-label=Inside><button onclick="this.textContent = 'Pressed'">Press</button>`

let site: Site
let provider: FakeProvider
let server: Server

beforeAll(async () => {
  site = await openSite({
    '/': SHOP,
    '/inner': INNER,
    '/moved': (_, answer) => answer.writeHead(302, { location: '/news' }).end(),
    '/news': '<title>News</title><h2>Nothing new</h2>',
    '/order': (asked, answer) => {
      answer.writeHead(200, { 'content-type': 'text/html' })
      answer.end(`<title>Ordered</title><p>Order: ${new URL(asked.url!, 'http://site').searchParams}`)
    },
    '/talk': `<title>Talk</title><button onclick="alert('Beware')">Alert</button>
      <button onclick="answer.textContent = confirm('Sure?') ? 'Yes' : 'No'">Confirm</button>
      <button onclick="answer.textContent = prompt('Who?', 'nobody')">Prompt</button><p id=answer></p>
      <a href=/news target=_blank>In a new tab</a>
      <div id=cover style="position:fixed;inset:0 0 auto;height:60px;background:red" hidden>Cookies?</div>
      <button onclick="cover.hidden = false">Cover</button>`,
    '/slow':
      '<title>Slow</title><p id=p>Working</p><script>setTimeout(() => { p.textContent = "Finished work" }, 700)</script>',
  })
  provider = await openFakeProvider()
  server = await startServer({ provider, config: { egress: { allowPrivate: [`127.0.0.1:${site.port}`] } } })
})

afterAll(async () => {
  await server.stop()
  await rm(server.dataDir, { recursive: true, force: true })
  await provider.close()
  await site.close()
})

test('shows a page as a tree with references, including frames and shadow roots', async () => {
  const { outputs, body } = await drive(server, provider, [
    { action: 'open', url: site.url('/') },
    (page) => ({ action: 'click', ref: ref(page, '"Load"') }),
    (_, [page = '']) => ({ action: 'click', ref: ref(page, 'button "0"') }),
    (_, [page = '']) => ({ action: 'click', ref: ref(page, /Not a real button/) }),
    (_, [page = '']) => ({ action: 'click', ref: ref(page.slice(page.indexOf('"Other"')), '"Press"') }),
    (_, [page = '']) => ({
      action: 'type',
      ref: ref(page.slice(page.indexOf('"Other"')), '"Inside"'),
      text: 'far away',
    }),
    (_, [page = '']) => ({ action: 'click', ref: ref(page, '"Closed"') }),
    { action: 'scroll', text: 'bottom' },
    (_, [page = '']) => ({ action: 'type', ref: ref(page, '"Name"'), text: 'Ada' }),
    (_, [page = '']) => ({ action: 'type', ref: ref(page, '"Day"'), text: '2026-11-21' }),
    (_, [page = '']) => ({ action: 'select', ref: ref(page, '"Size"'), text: 'Huge' }),
    (_, [page = '']) => ({ action: 'select', ref: ref(page, '"Size"'), text: 'Large' }),
    (_, [page = '']) => ({ action: 'click', ref: ref(page, '"Agree"') }),
    (_, [page = '']) => ({ action: 'press', key: 'Tab', ref: ref(page, '"Agree"') }),
    { action: 'press', key: 'Enter' },
    { action: 'back' },
    (page) => ({ action: 'click', ref: ref(page, '"read the news"') }),
    (_, [page = '']) => ({ action: 'click', ref: ref(page, '"Order"') }),
  ])
  expect(body).toMatchObject({ status: 'completed' })
  const [
    page = '',
    loaded,
    shadow,
    span,
    pressed,
    typed,
    closed,
    end,
    name,
    day,
    huge,
    large,
    agreed,
    ,
    ordered,
    back,
    news,
    stale,
  ] = outputs
  for (const line of [
    /^\[http:\/\/127\.0\.0\.1:\d+\/ · "The shop"\]$/m,
    /^- heading "Shop" \[level=1\]$/m,
    /text: Hello dear guest,/,
    /link "read the news" \[e\d+\] → \/moved/,
    /textbox "Name" \[required\] \[e\d+\]: old/,
    /textbox "Word" \[e\d+\]: ••••••$/m,
    /combobox "Size" \[e\d+\]: Small \(options: Small \| Large\)/,
    /checkbox "Agree" \[e\d+\]/,
    /button "Closed" \[disabled\] \[e\d+\]/,
    /row: Pen \| 2/,
    /iframe "Inner" \[e\d+\]\n {2}- paragraph: In a frame/,
    /iframe "Other" \[e\d+\]\n {2}- paragraph: In a frame/,
  ]) {
    expect(page).toMatch(line)
  }
  expect(page).not.toMatch(/never shown|nor this|secret/)
  expect(loaded).toContain('paragraph: Loaded by script')
  expect(shadow).toContain('button "1"')
  expect(span).toContain('"Spanned"')
  expect(pressed).toContain('button "Pressed"')
  expect(typed).toContain('far away')
  expect(closed).toMatch(/^\[e\d+\] is disabled: button "Closed"\./)
  expect(end).toMatch(/^Scrolled: at (\d+) of \1 pixels\./)
  expect(name).toContain(': Ada')
  expect(day).toContain('2026-11-21')
  expect(huge).toMatch(/has no option "Huge"; its options are "Small", "Large"/)
  expect(large).toMatch(/^Selected "Large" in/)
  expect(agreed).toContain('[checked]')
  expect(ordered).toContain('Order: name=Ada&word=secret&day=2026-11-21&size=l&agree=on')
  expect(back).toContain('"Shop"')
  expect(news).toMatch(/\/news · "News"\]\n- heading "Nothing new"/)
  expect(stale).toMatch(/^There is no \[e\d+\] on the page any more/)
})

test('reports dialogs, new tabs and covered elements, and waits for a page that is working', async () => {
  const { outputs } = await drive(server, provider, [
    { action: 'open', url: site.url('/talk') },
    (page) => ({ action: 'click', ref: ref(page, '"Alert"') }),
    (_, [page = '']) => ({ action: 'click', ref: ref(page, '"Confirm"') }),
    { action: 'dialog', key: 'accept' },
    (_, [page = '']) => ({ action: 'click', ref: ref(page, '"Confirm"') }),
    { action: 'snapshot' },
    (_, [page = '']) => ({ action: 'click', ref: ref(page, '"Prompt"') }),
    { action: 'dialog', key: 'accept', text: 'Ada' },
    (_, [page = '']) => ({ action: 'click', ref: ref(page, '"In a new tab"') }),
    { action: 'tabs' },
    { action: 'close' },
    (_, [page = '']) => ({ action: 'click', ref: ref(page, '"Cover"') }),
    (_, [page = '']) => ({ action: 'click', ref: ref(page, '"Alert"') }),
    { action: 'open', url: site.url('/slow') },
    { action: 'wait', text: 'Finished work' },
    { action: 'open', url: site.url('/none') },
    { action: 'press', key: 'Hyper+Q' },
    { action: 'click', ref: 'e99999' },
    { action: 'fly' },
  ])
  const [
    ,
    alert,
    asked,
    yes,
    ,
    dismissed,
    ,
    prompted,
    tab,
    tabs,
    closed,
    ,
    covered,
    ,
    waited,
    none,
    key,
    unknown,
    fly,
  ] = outputs
  expect(alert).toContain('The page showed an alert: "Beware". It was accepted.')
  expect(asked).toMatch(/The page asks \(confirm\): "Sure\?"\. Answer it with action "dialog"/)
  expect(yes).toContain('Yes')
  expect(dismissed).toMatch(/^The confirm "Sure\?" was dismissed\.[\s\S]*paragraph: No/)
  expect(prompted).toContain('paragraph: Ada')
  expect(tab).toMatch(
    /A new tab opened: t2\. It is the current one now\.\n\[http.*\/news · "News" · tab t2 of t1, t2\]/,
  )
  expect(tabs).toMatch(/^t1: http.*"Talk"\nt2 \(current\): http.*"News"/)
  expect(closed).toContain('Tab t2 was closed; t1 is the current one now.')
  expect(covered).toMatch(/\[e\d+\] is covered by another element: .*"Cookies\?"/)
  expect(waited).toMatch(/^"Finished work" is on the page\./)
  expect(none).toContain('HTTP status 404')
  expect(key).toContain('There is no key "Hyper+Q"')
  expect(unknown).toContain('There is no [e99999]')
  expect(fly).toMatch(/^browser did nothing: `action` must be one of open, snapshot/)
})
