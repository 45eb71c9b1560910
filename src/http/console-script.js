// The console's page: asks for an API key once, keeps it in this tab's sessionStorage and nowhere else, and shows what
// `GET /v1beta/server` says. What the server says becomes text nodes alone: no HTML is ever made of it.

const KEY = 'errand.key'
const $ = (id) => document.getElementById(id)

$('door').addEventListener('submit', (event) => {
  event.preventDefault()
  const key = $('key').value.trim()
  // Nothing else can stand in a header, and no key has anything else.
  if (!/^[\x21-\x7e]+$/.test(key)) return askForKey(key === '' ? 'Enter a key.' : 'That is not an API key.')
  sessionStorage.setItem(KEY, key)
  open()
})
$('again').addEventListener('click', open)
for (const id of ['leave', 'other']) $(id).addEventListener('click', () => askForKey())
open()

async function open() {
  const key = sessionStorage.getItem(KEY)
  if (!key) return askForKey()
  show('asking')
  try {
    const [answer, ready] = await Promise.all([ask('/v1beta/server', { 'x-svc-api-key': key }), ask('/readyz')])
    if (sessionStorage.getItem(KEY) !== key) return
    if (answer.status === 200) return showServer(answer.body, ready)
    if (answer.status === 401)
      return askForKey('The server does not know this key: it may be mistyped, expired or revoked.')
    explain(answer)
  } catch {
    trouble(
      'The server does not answer',
      `Nothing came back from ${location.host}. Is it running, and is this machine online?`,
    )
  }
}

async function ask(path, headers = {}) {
  const response = await fetch(path, { headers, cache: 'no-store', signal: AbortSignal.timeout(15_000) })
  return { status: response.status, body: await response.json().catch(() => undefined) }
}

function explain({ status, body }) {
  const said = body?.error?.message ?? `It answered ${status}, and nothing more.`
  const id = body?.requestId ? ` (${body.requestId})` : ''
  if (status === 403) {
    const remedy = 'The operator can do it, too: `script/errand settings set experimental.managedAgents on`.'
    return trouble('Switched off for this account', `${said} ${remedy}`)
  }
  trouble(status === 429 ? 'Too many calls' : 'The server can’t tell at the moment', `${said}${id}`)
}

// One of these is to be seen at a time.
function show(state) {
  for (const id of ['door', 'asking', 'trouble', 'server']) $(id).hidden = id !== state
  $('leave').hidden = state !== 'server'
}

function askForKey(problem = '') {
  sessionStorage.removeItem(KEY)
  $('server').replaceChildren()
  show('door')
  $('wrong').textContent = problem
  $('key').setAttribute('aria-invalid', String(problem !== ''))
  $('key').value = ''
  $('key').focus()
}

function trouble(title, text) {
  show('trouble')
  $('trouble').querySelector('h1').textContent = title
  $('trouble')
    .querySelector('p')
    .replaceChildren(...inline(text))
  $('again').focus()
}

function showServer(server, ready) {
  const { sandbox, models, tools, limits } = server
  $('server').replaceChildren(
    ...[header(server, ready), figures(server), warnings(sandbox)],
    heading('Isolation', sandbox.driver),
    rows(
      sandbox.enforced.map(parted).map(([topic, how]) => row(el('span', 'tick', topic), capital(how) || 'Enforced')),
    ),
    el('p', 'note', 'Inside a sandbox: ', sandbox.inside, '.'),
    heading('Models', `${models.length}`),
    rows(models.map((model) => modelRow(model, server.defaultModel))),
    heading('Tools', `${tools.available.length} of ${tools.available.length + tools.missing.length}`),
    rows([...tools.available.map((name) => toolRow(name, server.search)), ...tools.missing.map(missingRow)]),
    heading('Limits', 'as the operator has set them'),
    rows(limitRows(limits).map(([what, value]) => row(what, value))),
    el(
      'footer',
      '',
      'As found when the server started. ',
      link('/docs', 'API reference'),
      ' · ',
      link('/openapi.json', 'openapi.json'),
    ),
  )
  show('server')
}

function header({ version }, ready) {
  const well = ready.status === 200
  const health = el(
    'span',
    well ? 'health' : 'health bad',
    well ? 'Ready for work' : (ready.body?.error?.message ?? 'Not ready'),
  )
  return el('header', '', el('h1', '', location.host), el('p', 'lead', el('span', '', `Errand ${version}`), health))
}

function figures({ sandbox, models, tools }) {
  const { tried, refused } = sandbox.attacks
  const callable = models.filter(({ unavailable }) => unavailable === undefined)
  const real = callable.filter(({ demo }) => !demo).length
  const facts = [
    ['Sandbox', sandbox.driver],
    ['Attacks on itself refused', tried === 0 ? 'none tried' : `${refused} of ${tried}`],
    [
      'Models',
      real > 0 || callable.length === 0 ? `${real}` : 'demo',
      real > 0 || callable.length === 0 ? ' ready' : ' only',
    ],
    ['Tools', `${tools.available.length}`, ` of ${tools.available.length + tools.missing.length}`],
  ]
  return el(
    'dl',
    'figures card',
    ...facts.map(([what, value, small]) =>
      el('div', '', el('dt', '', what), el('dd', '', value, el('small', '', small ?? ''))),
    ),
  )
}

// What an operator must see first, with what to do about it.
function warnings({ notEnforced, attacks }) {
  const open = attacks.open.map(({ name, detail }) => [`A sandbox does not refuse ${name}`, detail ?? ''])
  const all = [...open, ...notEnforced.map(parted)]
  if (all.length === 0) return el('p', 'note', 'Everything that Errand asks of a sandbox is enforced on this host.')
  const box = el(
    'section',
    'warnings',
    el('h2', '', 'Not enforced on this host'),
    el('ul', '', ...all.map(([topic, text]) => el('li', '', el('b', '', topic), ...inline(sentence(text))))),
  )
  box.setAttribute('aria-label', 'Not enforced on this host')
  return box
}

function modelRow({ name, provider, source, demo, vision, documents, unavailable }, standard) {
  const title = el('span', unavailable ? 'cross' : 'tick', el('code', '', name))
  if (name === standard) title.append(' ', el('span', 'tag', 'default'))
  if (unavailable) return row(title, el('span', 'amber', ...inline(unavailable)))
  if (demo) return row(title, 'The built-in demo model: real code in a real sandbox, no intelligence.')
  const sees = [vision && 'sees images', documents && 'reads PDFs'].filter(Boolean).join(', ')
  return row(title, `${provider}, from ${source}${sees && `; ${sees}`}`)
}

const TOOLS = {
  code_execution: 'Python, JavaScript and bash in the sandbox',
  file_read: 'Text, pictures and PDFs of the workspace',
  file_write: 'Files of the workspace, written and changed',
  browser: 'A real Chromium in a sandbox of its own',
}

function toolRow(name, search) {
  const about =
    name === 'web_search' ? (search === 'model' ? 'By the models’ own providers' : `By ${search}`) : TOOLS[name]
  return row(el('span', 'tick', el('code', '', name)), about ?? '')
}

function missingRow({ name, remedy }) {
  return row(el('span', 'cross', el('code', '', name)), el('span', 'amber', ...inline(remedy)))
}

function limitRows(limits) {
  const { sandbox } = limits
  const most = ({ default: usual, max }, say) =>
    usual === max ? say(max) : `${say(max)} at most, ${say(usual)} by default`
  return [
    ['New interactions', `${count(limits.interactionsPerMinute)} a minute`],
    ['Other calls', `${count(limits.callsPerMinute)} a minute`],
    ['Running at once', `${count(limits.runningPerProject)} a project; ${count(limits.queuedPerProject)} more wait`],
    ['A run', most(limits.maxTurnDuration, time)],
    ['A tool call', most(limits.maxToolDuration, time)],
    ['Output tokens of a run', most(limits.maxOutputTokens, count)],
    ['Memory of a sandbox', most(sandbox.memoryMiB, mebibytes)],
    ['Its processor', most(sandbox.cpus, (cores) => `${cores} ${cores === 1 ? 'core' : 'cores'}`)],
    ['Its processes', most(sandbox.pids, count)],
    ['Its workspace', `${most(sandbox.workspaceMiB, mebibytes)}; ${most(sandbox.files, count)} files`],
    ['Request body', bytes(limits.bodyBytes)],
    ['A file by URL', bytes(limits.fileBytes)],
    ['Output files of a run', bytes(limits.outputFilesBytes)],
    ['Kept after the end', `${count(limits.retentionDays)} days`],
  ]
}

const count = (value) => value.toLocaleString('en')
const mebibytes = (value) => `${count(value)} MiB`
const bytes = (value) => mebibytes(Math.round(value / 1024 / 1024))

function time(seconds) {
  if (seconds % 3600 === 0) return `${seconds / 3600} h`
  return seconds % 60 === 0 ? `${seconds / 60} min` : `${seconds} s`
}

// `memory: 512 MiB` → topic and text. Without a colon it is all topic.
function parted(fact) {
  const at = fact.indexOf(': ')
  return at < 0 ? [capital(fact), ''] : [capital(fact.slice(0, at)), fact.slice(at + 2)]
}

function capital(text) {
  return text.charAt(0).toUpperCase() + text.slice(1)
}

function sentence(text) {
  return text === '' || /[.!?]$/.test(text) ? capital(text) : `${capital(text)}.`
}

// Text with `code` in it, as nodes.
function inline(text) {
  return text.split('`').map((part, i) => (i % 2 === 1 ? el('code', '', part) : part))
}

function heading(title, aside) {
  return el('h2', '', title, ' ', el('span', '', aside))
}

function rows(all) {
  return el('dl', 'rows card', ...all)
}

function row(title, text) {
  return el('div', '', el('dt', '', title), el('dd', '', text))
}

function link(href, text) {
  const a = el('a', '', text)
  a.href = href
  return a
}

function el(name, className, ...children) {
  const element = document.createElement(name)
  if (className) element.className = className
  element.append(...children)
  return element
}
