/**
 * The image of cells: the operator's image with a layer that has the runner, and Node if the image has none. So containers
 * mount nothing of the host, and the daemon need not share a file system with Errand. The tag is a hash of the content, so
 * the image is made once and found again.
 */
import { createHash } from 'node:crypto'
import { statSync } from 'node:fs'
import { join } from 'node:path'
import { runnerSource } from '../python-bundle.ts'
import { type Engine, EngineError } from './engine.ts'
import { tarStream } from './tar.ts'

export interface CellImage {
  readonly id: string
  /** Path of its Python. */
  readonly python: string
  /** The image's PATH, if it sets one. */
  readonly path: string | undefined
  /** Paths that the image declares as volumes: by default writable and on the host's disk. */
  readonly volumes: readonly string[]
}

interface Inspected {
  readonly Id: string
  readonly Config?: { Env?: string[] | null; Volumes?: object | null }
}

const REPOSITORY = 'errand-cell'
const BASE_LABEL = 'errand.base'
const USUAL_PATH = '/usr/local/bin:/usr/bin:/bin'

/** The container in which the layer is made. It is never started, and removed in the end. */
interface BuildContainer {
  readonly name: string
  readonly labels: Readonly<Record<string, string>>
}

/** Throws an Error with a sentence if there is no such image, or it has no Python. */
export async function prepareImage(engine: Engine, name: string, build: BuildContainer): Promise<CellImage> {
  const base = await findImage(engine, name)
  if (!base) {
    throw new Error(
      `sandbox.image: this Docker has no image ${name}. Make one by script/rootfs --image ${name}, or docker pull another and name it.`,
    )
  }
  const path = base.Config?.Env?.find((entry) => entry.startsWith('PATH='))?.slice('PATH='.length)
  const { size, mtimeMs } = statSync(process.execPath)
  const runner = runnerSource()
  const content = [base.Id, runner, process.execPath, size, mtimeMs]
  const tag = `${REPOSITORY}:${createHash('sha256').update(JSON.stringify(content)).digest('hex').slice(0, 16)}`
  const labels = { [BASE_LABEL]: name }

  const { Id: container } = await engine.ask<{ Id: string }>(
    'POST',
    '/containers/create',
    { name: build.name },
    {
      Image: base.Id,
      Cmd: ['/bin/true'],
      Entrypoint: [],
      NetworkDisabled: true,
      Labels: build.labels,
    },
  )
  try {
    const directories = (path ?? USUAL_PATH).split(':').filter((directory) => directory.startsWith('/'))
    const python = await findProgram(engine, container, 'python3', directories)
    if (!python) throw new Error(`sandbox.image: ${name} has no python3, which the sandbox needs.`)
    const made = await findImage(engine, tag)
    if (!made) {
      const node = await findProgram(engine, container, 'node', ['/usr/local/bin', '/usr/bin'])
      await engine.give(
        'PUT',
        `/containers/${container}/archive`,
        { path: '/' },
        tarStream(ourFiles(runner, node === undefined)),
      )
      const [repo = '', tagName = ''] = tag.split(':')
      await engine.ask('POST', '/commit', { container, repo, tag: tagName, pause: 0 }, { Labels: labels })
      await removeOthers(engine, name, tag)
    }
    const { Id } = made ?? (await findImage(engine, tag))!
    return { id: Id, python, path, volumes: Object.keys(base.Config?.Volumes ?? {}) }
  } finally {
    await engine.ask('DELETE', `/containers/${container}`, { force: 1, v: 1 })
  }
}

function ourFiles(runner: string, withNode: boolean) {
  return [
    { name: 'errand' },
    { name: 'errand/runner.py', content: runner },
    ...(withNode ? [{ name: 'errand/bin' }, { name: 'errand/bin/node', source: process.execPath }] : []),
  ]
}

export async function findImage(engine: Engine, name: string): Promise<Inspected | undefined> {
  try {
    return await engine.ask<Inspected>('GET', `/images/${encodeURI(name)}/json`)
  } catch (error) {
    if (error instanceof EngineError && error.status === 404) return undefined
    throw error
  }
}

async function findProgram(
  engine: Engine,
  container: string,
  name: string,
  directories: readonly string[],
): Promise<string | undefined> {
  for (const directory of directories) {
    const path = join(directory, name)
    try {
      await engine.ask('HEAD', `/containers/${container}/archive`, { path })
      return path
    } catch (error) {
      if (!(error instanceof EngineError && error.status === 404)) throw error
    }
  }
  return undefined
}

/** Removes images of earlier versions of Errand or of the base. The daemon keeps those that a container uses. */
async function removeOthers(engine: Engine, base: string, tag: string): Promise<void> {
  const filters = JSON.stringify({ label: [`${BASE_LABEL}=${base}`], reference: [REPOSITORY] })
  const found = await engine.ask<{ RepoTags?: string[] | null }[]>('GET', '/images/json', { filters })
  for (const other of found.flatMap(({ RepoTags }) => RepoTags ?? [])) {
    if (other !== tag) await engine.ask('DELETE', `/images/${other}`).catch(() => {})
  }
}
