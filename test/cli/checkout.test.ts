/** A fresh checkout: what its scripts install and what they do not, and the pages of a server whose console is not built yet. */
import { execFile, spawn } from 'node:child_process'
import { cpSync, existsSync, mkdirSync, mkdtempSync, readFileSync, renameSync, rmSync, symlinkSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { packagerEnv, ROOT, userEnv } from '../package/install.ts'

const run = promisify(execFile)

let scratch: string
beforeAll(() => {
  scratch = mkdtempSync(join(tmpdir(), 'errand-checkout-'))
})
afterAll(() => rmSync(scratch, { recursive: true, force: true }))

/** The tracked files, as they are now. */
async function checkout(name: string): Promise<string> {
  const [place, list] = [join(scratch, name), join(scratch, `${name}.list`)]
  mkdirSync(place)
  const files = `git ls-files --cached --others --exclude-standard -z >'${list}'`
  const copy = `tar --null --ignore-failed-read -T '${list}' -cf - | tar -C '${place}' -xf -`
  await run('sh', ['-ec', `${files}; ${copy}`], { cwd: ROOT })
  return place
}

test('script/errand --help prints a usage and installs nothing', async () => {
  const place = await checkout('help')
  // Anything that it would install with fails.
  const refused = join(scratch, 'refused')
  mkdirSync(refused)
  for (const name of ['npm', 'apt-get', 'sudo']) symlinkSync('/bin/false', join(refused, name))
  const env = { ...userEnv(), PATH: `${refused}:${process.env.PATH}` }
  for (const args of [[], ['--help'], ['help'], ['run', '--help'], ['keys', 'create', '-h']]) {
    const { stdout, stderr } = await run(join(place, 'script/errand'), args, { env })
    expect(stdout, args.join(' ')).toMatch(/^Usage: script\/errand \[command\]/)
    expect(stdout).toContain('This checkout is not set up yet.')
    expect(stderr).toBe('')
  }
  expect(existsSync(join(place, 'node_modules'))).toBe(false)
})

test('script/setup --serve installs what a server needs, and neither the packages of builds nor of tests', async () => {
  const place = await checkout('serve')
  await run(join(place, 'script/setup'), ['--serve'], { env: packagerEnv({ npm_config_prefer_offline: 'true' }) })
  const has = (name: string) => existsSync(join(place, 'node_modules', name))
  expect(['fastify', 'undici', '@ai-sdk/anthropic'].filter(has)).toHaveLength(3)
  const others = [
    'tailwindcss',
    'pdfjs-dist',
    '@tanstack/react-router',
    'marked',
    'typescript',
    'vitest',
    'playwright-core',
  ]
  expect(others.filter(has)).toEqual([])
  expect(existsSync(join(place, 'console/dist'))).toBe(false)
  const { stdout } = await run(join(place, 'script/errand'), ['--help'], { env: userEnv() })
  expect(stdout).toContain('Usage: errand [options] [command]')
}, 600_000)

test('the lock file names the source of every package, so that npm need not ask for it', () => {
  const { packages } = JSON.parse(readFileSync(join(ROOT, 'package-lock.json'), 'utf8')) as {
    packages: Record<string, { integrity?: string; resolved?: string }>
  }
  const fetched = Object.entries(packages).filter(([, { integrity }]) => integrity !== undefined)
  expect(fetched.length).toBeGreaterThan(100)
  const unnamed = fetched.filter(([, { resolved }]) => !resolved?.startsWith('https://registry.npmjs.org/'))
  expect(unnamed.map(([path]) => path)).toEqual([])
})

test('until the console and the documentation are built, their pages say so and reload; then they appear', async () => {
  const place = await checkout('building')
  symlinkSync(join(ROOT, 'node_modules'), join(place, 'node_modules'))
  const env = userEnv({ ERRAND_HOME: join(scratch, 'home'), ERRAND_PORT: '0', ERRAND_LOG: 'silent' })
  const server = spawn(process.execPath, [join(place, 'src/main.ts'), 'serve'], {
    env,
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  const ended = new Promise((resolve) => server.once('exit', resolve))
  try {
    const url = await new Promise<string>((resolve, reject) => {
      let said = ''
      server.stdout.setEncoding('utf8').on('data', (chunk) => {
        said += chunk
        const found = /http:\/\/127\.0\.0\.1:\d+/.exec(said)
        if (found) resolve(found[0])
      })
      void ended.then(() => reject(new Error(`It ended:\n${said}`)))
    })
    for (const path of ['/console', '/console/interactions', '/docs/', '/docs/start']) {
      const page = await fetch(url + path)
      expect(page.status, path).toBe(503)
      expect(page.headers.get('content-type')).toBe('text/html; charset=utf-8')
      expect(await page.text()).toMatch(/http-equiv="refresh"[\s\S]*is not built yet\.[\s\S]*script\/setup/)
    }
    for (const folder of ['console', 'site']) {
      cpSync(join(ROOT, folder, 'dist'), join(place, `${folder}-dist`), { recursive: true })
      renameSync(join(place, `${folder}-dist`), join(place, folder, 'dist'))
    }
    expect(await (await fetch(`${url}/console`)).text()).toContain('/console/assets/')
    expect((await fetch(`${url}/docs/start`)).status).toBe(200)
  } finally {
    server.kill('SIGTERM')
    await ended
  }
})
