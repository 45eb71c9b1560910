/**
 * A Docker daemon for the tests: with a socket and a temporary directory of its own, no network, and one image that
 * script/rootfs builds. It ends with the tests, even if they are killed. Needs root.
 */
import { type ChildProcess, spawn, spawnSync } from 'node:child_process'
import {
  createReadStream,
  existsSync,
  mkdtempSync,
  openSync,
  readFileSync,
  rmSync,
  statfsSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import type { TestProject } from 'vitest/node'
import { createEngine, type Engine } from '../../src/sandbox/docker/engine.ts'
import { builtTree } from './trees.ts'

declare module 'vitest' {
  export interface ProvidedContext {
    docker: ({ driver: 'docker'; runtime: string } & Omit<Docker, 'stop'>) | undefined
  }
}

export const RUNSC = '/usr/bin/runsc'
const IMAGE = 'errand-test'

export interface Docker {
  readonly dockerHost: string
  readonly image: string
  stop(): Promise<void>
}

export default async function setup(project: TestProject): Promise<() => Promise<void>> {
  const { dockerHost, image, stop } = await startDocker()
  project.provide('docker', { driver: 'docker', dockerHost, image, runtime: 'runc' })
  return stop
}

export async function startDocker(): Promise<Docker> {
  const home = mkdtempSync(join(tmpdir(), 'errand-dockerd-'))
  const data = mkdtempSync(join(dataPlace(), 'errand-dockerd-'))
  const dockerHost = `unix://${home}/docker.sock`
  const engine = createEngine(dockerHost)
  const [daemon, tree] = await Promise.all([startDaemon(home, data, dockerHost, engine), builtTree('small')])
  await engine.give('POST', '/images/create', { fromSrc: '-', repo: IMAGE, tag: 'latest' }, createReadStream(tree))
  return {
    dockerHost,
    image: IMAGE,
    async stop() {
      daemon.kill('SIGTERM')
      await new Promise((resolve) => daemon.once('exit', resolve))
      // Docker leaves this mount behind after a container with the host's network.
      spawnSync('umount', [`${home}/exec/netns/default`])
      for (const place of [home, data]) rmSync(place, { recursive: true, force: true })
    },
  }
}

/** Docker cannot put overlays on an overlay, such as the root of a container; the checkout may be on another file system. */
function dataPlace(): string {
  const OVERLAY = 0x794c_7630
  return statfsSync(tmpdir()).type === OVERLAY ? join(import.meta.dirname, '../../node_modules') : tmpdir()
}

async function startDaemon(home: string, data: string, dockerHost: string, engine: Engine): Promise<ChildProcess> {
  // Debian's gVisor, with options for a virtual machine and for a network namespace that Docker makes.
  const runsc = { path: RUNSC, runtimeArgs: ['--platform=ptrace', '--network=none'] }
  const runtimes = existsSync(RUNSC) ? { runsc } : {}
  writeFileSync(join(home, 'daemon.json'), JSON.stringify({ runtimes }))
  const log = openSync(join(home, 'dockerd.log'), 'a')
  const places = ['--data-root', data, '--exec-root', `${home}/exec`, '--pidfile', `${home}/dockerd.pid`]
  const alone = ['--config-file', `${home}/daemon.json`, '--bridge=none', '--iptables=false', '--ip6tables=false']
  const command = ['--pdeathsig', 'TERM', 'dockerd', '-H', dockerHost, ...places, ...alone]
  const daemon = spawn('setpriv', command, { stdio: ['ignore', log, log] })
  const ended = new Promise<never>((_, reject) => {
    const fail = () => reject(new Error(`dockerd could not start:\n${readFileSync(join(home, 'dockerd.log'), 'utf8')}`))
    daemon.once('error', fail).once('exit', fail)
  })
  ended.catch(() => {}) // after the start, `stop` handles its end
  const answers = () =>
    engine.ask('GET', '/version').then(
      () => true,
      () => false,
    )
  while (!(await Promise.race([answers(), ended]))) await sleep(50)
  return daemon
}
