/** Exports an image to a directory tree, for the bubblewrap driver. Each image is exported once, by its id. */
import { spawn } from 'node:child_process'
import { chmodSync, mkdirSync, mkdtempSync, readdirSync, renameSync, rmSync } from 'node:fs'
import { basename, join } from 'node:path'
import { pipeline } from 'node:stream/promises'
import type { Engine } from './engine.ts'
import { findImage } from './image.ts'

/** Returns the tree's path below `home`, a private directory. Throws an Error with a sentence if there is no such image. */
export async function exportImage(engine: Engine, name: string, home: string): Promise<string> {
  const image = await findImage(engine, name)
  if (!image) {
    throw new Error(
      `sandbox.rootfs: there is no directory ${name}, and this Docker has no image of that name (docker pull, or script/rootfs --image ${name}).`,
    )
  }
  const tree = join(home, image.Id.replace(/^sha256:/, '').slice(0, 32))
  mkdirSync(home, { recursive: true, mode: 0o700 })
  // Incomplete exports, and those of other images.
  for (const other of readdirSync(home).filter((found) => found !== basename(tree))) {
    rmSync(join(home, other), { recursive: true, force: true })
  }
  if (readdirSync(home).length > 0) return tree
  const making = mkdtempSync(join(home, 'making-'))
  const { Id: container } = await engine.ask<{ Id: string }>(
    'POST',
    '/containers/create',
    {},
    {
      Image: image.Id,
      Cmd: ['/bin/true'], // never started
      Entrypoint: [],
      NetworkDisabled: true,
    },
  )
  try {
    await unpack(await engine.read(`/containers/${container}/export`), making)
    chmodSync(making, 0o755) // `home` is closed; sandboxes have a uid of their own
    renameSync(making, tree)
  } finally {
    await engine.ask('DELETE', `/containers/${container}`, { force: 1, v: 1 })
  }
  return tree
}

/** Files get the host's own user, and devices are left out: the tree is always mounted read-only and nosuid. */
async function unpack(archive: NodeJS.ReadableStream, directory: string): Promise<void> {
  const options = ['--no-same-owner', '--exclude=dev/*', '--exclude=.dockerenv', '--delay-directory-restore']
  const tar = spawn('tar', ['-x', '-C', directory, ...options], { stdio: ['pipe', 'ignore', 'pipe'] })
  let stderr = ''
  tar.stderr!.setEncoding('utf8').on('data', (text: string) => {
    stderr = (stderr + text).slice(-1000)
  })
  const ended = new Promise<number | null>((resolve, reject) => tar.once('error', reject).once('close', resolve))
  const [, code] = await Promise.all([pipeline(archive, tar.stdin!).catch(() => {}), ended])
  if (code !== 0) throw new Error(`sandbox.rootfs: the image could not be unpacked: ${stderr.trim()}`)
}
