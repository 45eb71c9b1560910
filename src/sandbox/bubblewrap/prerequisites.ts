/** Finds bubblewrap, the directory tree that is the root of the sandboxes, and Python in it. */
import { execFileSync } from 'node:child_process'
import { existsSync, lstatSync } from 'node:fs'
import { isAbsolute, join } from 'node:path'
import { createEngine } from '../docker/engine.ts'
import { exportImage } from '../docker/export.ts'
import { ARCHITECTURES } from './seccomp.ts'

/** Throws an Error with a sentence for the operator if there is none, or only an old one. */
export function findBubblewrap(): string {
  const path = ['/usr/bin/bwrap', '/usr/local/bin/bwrap', '/bin/bwrap'].find((place) => existsSync(place))
  if (!path) {
    throw new Error(
      'The sandbox needs bubblewrap, which is not installed: apt-get install -y bubblewrap (Debian, Ubuntu)',
    )
  }
  const version = execFileSync(path, ['--version'], { encoding: 'utf8' }).trim()
  const [major = 0, minor = 0] = (/(\d{1,5})\.(\d{1,5})/.exec(version)?.slice(1) ?? []).map(Number)
  if (major === 0 && minor < 8) {
    throw new Error(
      `The sandbox needs bubblewrap 0.8.0 or newer; ${path} is ${version}. Debian 12 and Ubuntu 24.04 have it.`,
    )
  }
  return path
}

/** The configured tree. An image is exported to one first. Undefined: the host's /usr. */
export async function findTree(
  rootfs: string | undefined,
  dockerHost: string,
  stateDir: string,
): Promise<string | undefined> {
  if (rootfs === undefined || existsSync(rootfs)) return rootfs
  if (isAbsolute(rootfs)) throw new Error(`sandbox.rootfs: ${rootfs} does not exist.`)
  return exportImage(createEngine(dockerHost), rootfs, join(stateDir, 'images'))
}

/** Path of Python inside. Throws an Error with a sentence for the operator if there is none. */
export function findPython(rootfs: string | undefined): string {
  if (!(process.arch in ARCHITECTURES)) {
    throw new Error(`The sandbox has no seccomp table for ${process.arch}; x86_64 and aarch64 are supported.`)
  }
  // Does not follow links, which may be valid only inside. The host's /usr/local is not part of the distribution.
  const places = rootfs === undefined ? ['/usr/bin/python3'] : ['/usr/local/bin/python3', '/usr/bin/python3']
  const found = places.find((place) => lstatSync(join(rootfs ?? '/', place), { throwIfNoEntry: false }))
  if (found) return found
  throw new Error(
    rootfs === undefined
      ? 'The sandbox needs /usr/bin/python3, which is not installed: apt-get install -y python3'
      : `sandbox.rootfs: ${rootfs} has no usr/bin/python3, which the sandbox needs.`,
  )
}
