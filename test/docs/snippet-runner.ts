/**
 * Runs the blocks of a page as a reader would: in one shell session, in a home directory with the checkout at ~/errand
 * and both clients installed. The address http://127.0.0.1:8080 is replaced by the address of the test's server.
 */
import { spawn } from 'node:child_process'
import { mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import type { Server } from '../support/server.ts'
import { ROOT } from './blocks.ts'

const TIMEOUT_MS = 120_000
const PYTHON_CLIENT = join(ROOT, 'clients/python/src')

export interface SnippetRunner {
  readonly home: string
  /** Returns stdout. Throws with all output if the exit code is not 0. */
  run(language: string, text: string): Promise<string>
  /** Writes a file into the shell's current directory. */
  write(name: string, content: string | Buffer): void
  close(): void
}

export function openSnippetRunner(server: Pick<Server, 'url' | 'key' | 'dataDir'>): SnippetRunner {
  const home = mkdtempSync(join(tmpdir(), 'errand-page-'))
  const state = join(home, '.state')
  mkdirSync(join(home, 'node_modules'))
  symlinkSync(ROOT, join(home, 'errand'))
  symlinkSync(join(ROOT, 'clients/typescript'), join(home, 'node_modules/errand-client'))
  mkdirSync(join(home, 'script'))
  writeFileSync(join(home, 'script/errand'), '#!/bin/sh\nexec ~/errand/script/errand "$@"\n', { mode: 0o755 })
  // Makes curl fail on HTTP errors.
  writeFileSync(join(home, '.curlrc'), 'fail-with-body\n')
  writeFileSync(state, `cd ${home}/errand\n`)
  const env = {
    HOME: home,
    PATH: `${dirname(process.execPath)}:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin`,
    LANG: 'C.UTF-8',
    NO_COLOR: '1',
    PYTHONPATH: PYTHON_CLIENT,
    // Compiled once for all programs of all pages.
    PYTHONPYCACHEPREFIX: join(ROOT, 'node_modules/.cache/python'),
    NODE_COMPILE_CACHE: join(ROOT, 'node_modules/.cache/errand'),
    npm_config_cache: join(home, '.npm'),
    ERRAND_CONFIG: join(server.dataDir, 'errand.yaml'),
    ERRAND_DATA_DIR: server.dataDir,
    ERRAND_BASE_URL: server.url,
    ERRAND_API_KEY: server.key,
  }
  let programs = 0

  /** Runs a block in the shell. Its directory, variables and functions are kept for the next block. */
  function inShell(command: string): Promise<string> {
    const script = `. '${state}'\nset -euo pipefail\n${command}\n{ export -p; declare -f; printf 'cd %q\\n' "$PWD"; } >'${state}'\n`
    return ended(spawn('bash', ['-c', script], { env, stdio: ['ignore', 'pipe', 'pipe'] }), command)
  }

  return {
    home,
    run(language, text) {
      const here = text.replaceAll('http://127.0.0.1:8080', server.url)
      if (language === 'sh') return inShell(here)
      // Outside the checkout: modules in the checkout would be found first.
      const name = `${home}/program-${++programs}.${language === 'python' ? 'py' : 'mts'}`
      writeFileSync(name, here)
      return inShell(`cd ~; ${language === 'python' ? 'python3' : 'node'} '${name}'`)
    },
    write(name, content) {
      const directory = /^cd (.*)$/m.exec(
        readFileSync(state, 'utf8')
          .split('\n')
          .findLast((line) => line.startsWith('cd ')) ?? '',
      )?.[1]
      const here = typeof content === 'string' ? content.replaceAll('http://127.0.0.1:8080', server.url) : content
      writeFileSync(join(directory ?? home, name), here)
    },
    close: () => rmSync(home, { recursive: true, force: true }),
  }
}

function ended(child: ReturnType<typeof spawn>, command: string): Promise<string> {
  let [stdout, stderr] = ['', '']
  child.stdout?.setEncoding('utf8').on('data', (text) => (stdout += text))
  child.stderr?.setEncoding('utf8').on('data', (text) => (stderr += text))
  return new Promise((resolve, reject) => {
    const timer = setTimeout(() => child.kill('SIGKILL'), TIMEOUT_MS)
    child.once('close', (code) => {
      clearTimeout(timer)
      if (code === 0) resolve(stdout)
      else reject(new Error(`It ended with ${code}:\n${command}\n\n${stdout}${stderr}`))
    })
  })
}

/** Whether `printed` matches `shown`: `…` matches any text in a line, a line `[…]` any lines. */
export function fits(shown: string, printed: string): boolean {
  const lines = shown.trim().split('\n')
  const pattern = lines.map((line) =>
    line.trim() === '[…]' ? '(?:[^\\n]*\\n)*?' : `${line.split('…').map(escaped).join('[^\\n]*')} *\\n+`,
  )
  return new RegExp(`^\\n*${pattern.join('')}\\n*$`).test(`${printed.trim()}\n`)
}

function escaped(text: string): string {
  return text.replaceAll(/[.*+?^${}()|[\]\\]/g, '\\$&')
}
