/**
 * The root directory of a sandbox, read-only: the host's /usr with a minimal /etc, or a configured directory tree. Of the
 * host's /etc it has only the files that programs need to start; it has nothing of /root, /home or /var.
 *
 * The files are the host's, the inodes are not: each sandbox gets an overlay of its own (mounts.ts). So locks and watches on
 * a shared file reach neither another sandbox nor the host.
 */
import {
  chmodSync,
  cpSync,
  existsSync,
  linkSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readlinkSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { basename, dirname, join, resolve } from 'node:path'
import { NODE_INSIDE, RUNNER_INSIDE } from '../inside.ts'

/** Files of the host's /etc that are copied into the sandbox's /etc, if they exist. No keys: `ssl/private` is not listed. */
const COPIED_FROM_ETC = [
  'alternatives',
  'fonts',
  'ld.so.cache',
  'localtime',
  'matplotlibrc',
  'mime.types',
  'ssl/certs',
  'ssl/openssl.cnf',
]

const WRITTEN_INTO_ETC: Readonly<Record<string, string>> = {
  passwd:
    'root:x:0:0:root:/:/bin/false\nerrand:x:1000:1000:errand:/workspace:/bin/bash\nnobody:x:65534:65534:nobody:/:/bin/false\n',
  group: 'root:x:0:\nerrand:x:1000:\nnogroup:x:65534:\n',
  hosts: '127.0.0.1 localhost sandbox\n::1 localhost\n',
  'nsswitch.conf': 'passwd: files\ngroup: files\nhosts: files dns\n',
}

/** Mount points of the sandbox. */
const MOUNT_POINTS = ['dev', 'proc', 'run/errand', 'tmp', 'workspace']
/** Entries of a configured tree that the sandbox replaces. */
const OWN_TOP_LEVEL = new Set(['dev', 'errand', 'proc', 'run', 'sys', 'tmp', 'workspace'])
const LINKS = ['bin', 'sbin', 'lib', 'lib32', 'lib64', 'libx32']

/** An empty file and an empty directory of the base layer, which cover paths that must not be visible. */
export const EMPTY_FILE = 'run/errand/empty'
export const EMPTY_DIRECTORY = 'run/errand/nothing'

export interface Root {
  /** Layers of `/`, the uppermost first. */
  readonly layers: readonly string[]
  /** Further directories: path on the host, path inside. */
  readonly directories: readonly (readonly [source: string, target: string])[]
}

export interface RootOptions {
  /** Undefined: the host's /usr. */
  readonly rootfs: string | undefined
  /** A directory that only the host can write to and every uid can read; new at each start. */
  readonly scratch: string
  /** Private directory that is kept from one start to the next. */
  readonly stateDir: string
  /** The source of the runner. */
  readonly runner: string
}

export function prepareRoot({ rootfs, scratch, stateDir, runner }: RootOptions): Root {
  const base = join(scratch, 'root')
  for (const path of [...MOUNT_POINTS, dirname(RUNNER_INSIDE), EMPTY_DIRECTORY]) makeDirectory(base, path)
  writeFileSync(join(base, EMPTY_FILE), '', { mode: 0o444 })
  writeFileSync(join(base, RUNNER_INSIDE), runner)
  chmodSync(join(base, RUNNER_INSIDE), 0o644)
  const node = hasNode(rootfs) ? undefined : nodeDirectory(rootfs, base, stateDir)
  const shown = node === undefined ? [] : [[node, dirname(NODE_INSIDE)] as const]
  if (rootfs !== undefined) return { layers: [base, rootfs], directories: shown }
  for (const name of LINKS) copyLink(`/${name}`, join(base, name))
  makeDirectory(base, 'usr')
  makeEtc(join(base, 'etc'))
  return { layers: [base], directories: [['/usr', '/usr'], ...shown] }
}

/**
 * bubblewrap's arguments for the same root without overlays: every inode is the host's. `near(index)`: path at which the
 * cell's uid can reach that layer or directory.
 */
export function plainArguments({ layers, directories }: Root, near: (index: number) => string): string[] {
  const ofLayers = layers.flatMap((layer, index) =>
    readdirSync(layer)
      .filter((name) => !OWN_TOP_LEVEL.has(name) || (index === 0 && name === 'errand'))
      .flatMap((name) => shown(join(layer, name), `/${name}`, join(near(index), name))),
  )
  const further = directories.flatMap(([, target], index) => ['--ro-bind', near(layers.length + index), target])
  return [...ofLayers, ...further]
}

/** Resolves the symbolic links of a path inside the root. */
export function resolveInside(rootfs: string, path: string): string {
  for (let hops = 0; hops < 20; hops++) {
    const found = lstatSync(join(rootfs, path), { throwIfNoEntry: false })
    if (!found?.isSymbolicLink()) break
    path = resolve(dirname(path), readlinkSync(join(rootfs, path)))
  }
  return path
}

function hasNode(rootfs: string | undefined): boolean {
  return rootfs !== undefined && ['usr/local/bin/node', 'usr/bin/node'].some((path) => existsSync(join(rootfs, path)))
}

/**
 * A directory with only the Node that runs Errand, to be mounted inside: the host's own Node may be too old. Undefined if that
 * Node is in /usr, which is visible anyway.
 */
function nodeDirectory(rootfs: string | undefined, base: string, stateDir: string): string | undefined {
  const { execPath } = process
  const place = join(base, dirname(NODE_INSIDE))
  mkdirSync(place, { recursive: true, mode: 0o755 })
  if (rootfs === undefined && execPath.startsWith('/usr/') && isReachable(execPath)) {
    symlinkSync(execPath, join(base, NODE_INSIDE))
    return undefined
  }
  if (readdirSync(dirname(execPath)).join() === basename(NODE_INSIDE)) return dirname(execPath)
  const own = join(stateDir, 'node')
  const file = join(own, basename(NODE_INSIDE))
  const [wanted, there] = [statSync(execPath), statSync(file, { throwIfNoEntry: false })]
  if (there?.size === wanted.size && there.mtimeMs === wanted.mtimeMs) return own
  rmSync(own, { recursive: true, force: true })
  mkdirSync(own, { mode: 0o755 })
  try {
    linkSync(execPath, file)
  } catch {
    cpSync(execPath, file, { preserveTimestamps: true }) // on another file system, or linking is not permitted
  }
  return own
}

function makeDirectory(base: string, path: string): void {
  mkdirSync(join(base, path), { recursive: true, mode: 0o755 })
}

function copyLink(source: string, target: string): void {
  const found = lstatSync(source, { throwIfNoEntry: false })
  if (found) symlinkSync(readlinkSync(source), target)
}

/** Keeps a symbolic link, so that it resolves inside; mounts anything else read-only. */
function shown(source: string, target: string, near: string): string[] {
  const link = lstatSync(source).isSymbolicLink()
  return link ? ['--symlink', readlinkSync(source), target] : ['--ro-bind', near, target]
}

function makeEtc(etc: string): void {
  for (const name of COPIED_FROM_ETC) {
    const source = join('/etc', name)
    if (!lstatSync(source, { throwIfNoEntry: false })) continue
    makeDirectory(etc, dirname(name))
    cpSync(source, join(etc, name), { recursive: true, verbatimSymlinks: true })
  }
  for (const [name, text] of Object.entries(WRITTEN_INTO_ETC)) writeFileSync(join(etc, name), text, { mode: 0o644 })
}

/** True if a process of another uid can reach and execute the file. */
function isReachable(path: string): boolean {
  for (let place = dirname(path); ; place = dirname(place)) {
    if ((statSync(place).mode & 0o001) === 0) return false
    if (place === '/') return (statSync(path).mode & 0o005) === 0o005
  }
}
