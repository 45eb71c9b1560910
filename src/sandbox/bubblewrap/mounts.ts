/**
 * Mounts of a cell that bubblewrap cannot make. A mount namespace is made first, bubblewrap runs in it and binds them into the
 * cell: an overlay of the root and of each mounted directory, so that its inodes are the cell's own; a tmpfs for each
 * writable path, with limits on bytes and number of files; devices and terminals of its own.
 *
 * An ordinary user gets the mount namespace inside a user namespace, where devices cannot be made. Mounts that are not
 * possible are replaced by bubblewrap's own; the properties of CellMounts say which.
 */
import { spawnSync } from 'node:child_process'
import { existsSync, mkdirSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { MASKED_PROC, TERMINALS, type WritablePath, writablePaths } from '../inside.ts'
import type { Mount, SandboxLimits } from '../port.ts'
import { EMPTY_DIRECTORY, EMPTY_FILE, plainArguments, type Root } from './rootfs.ts'

const PATH = '/usr/sbin:/usr/bin:/sbin:/bin'
const MIB = 1024 * 1024
/** Mounts all entries of the table $1 and executes the rest. One `mount` for all takes 2 ms. Layers are relative to $0. */
const MOUNT_SCRIPT = `cd "$0" && mount --no-mtab --internal-only --all --fstab "$1" && shift && cd / && exec "$@"`
const DEVICES = { null: [1, 3], zero: [1, 5], full: [1, 7], random: [1, 8], urandom: [1, 9], tty: [5, 0] }
const DEVICE_LINKS = {
  core: '/proc/kcore',
  fd: '/proc/self/fd',
  ptmx: 'pts/ptmx',
  stdin: '/proc/self/fd/0',
  stdout: '/proc/self/fd/1',
  stderr: '/proc/self/fd/2',
}

export interface Prepared {
  /** Command before the command of a cell. */
  readonly before: string[]
  /** bubblewrap's arguments for the root, with /proc and /dev. */
  readonly root: string[]
  /** bubblewrap's arguments for the writable paths and `mounts`. */
  readonly places: string[]
}

export interface CellMounts {
  /** True if the number of files is limited. */
  readonly countsFiles: boolean
  /** True if a cell can write its namespaces' settings in /proc/sys, such as sizes of message queues. */
  readonly opensSettings: boolean
  /** True if no inode of the root (or of a device) is shared with the host or another cell. */
  readonly ownsRoot: boolean
  readonly ownsDevices: boolean
  /** True if the number of terminals is limited. */
  readonly countsTerminals: boolean
  prepare(slot: number, limits: SandboxLimits, mounts: readonly Mount[]): Prepared
  /** Throws an Error with a sentence if a template cannot make cells with inodes of their own here. */
  prepareTemplate(): PreparedTemplate
}

export interface PreparedTemplate extends Omit<Prepared, 'places'> {
  /** Directories that a template needs for its cells: path on the host, path in the template. */
  readonly given: readonly (readonly [source: string, target: string])[]
  readonly plan: RootPlan
}

/** Instructions for a template to make the root of a cell. */
export interface RootPlan {
  /** `lowerdir` of the root's overlay. */
  readonly lower: string
  readonly directories: readonly (readonly [lower: string, target: string])[]
  /** Directory with 256 directories `0/0` to `f/f`, each for one cell's /dev. */
  readonly devices: string
  readonly terminals: number
  readonly masked: { readonly files: readonly string[]; readonly directories: readonly string[] }
}

const MASKED = {
  files: MASKED_PROC.files.filter((path) => existsSync(path)),
  directories: MASKED_PROC.directories.filter((path) => existsSync(path)),
}

export interface MountOptions {
  /** A directory that only the host can write to. */
  readonly scratch: string
  readonly root: Root
  /** Host uid of the cell in a slot; undefined: the host's own. */
  readonly uidOf: ((slot: number) => number) | undefined
}

export function createMounts({ scratch, root, uidOf }: MountOptions): CellMounts {
  const at = (...names: string[]) => join(scratch, ...names)
  const isRoot = process.getuid?.() === 0
  const namespace = ['unshare', ...(isRoot ? [] : ['--user', '--map-root-user']), '--mount', '--']
  const prefix = (table: string) => [...namespace, 'sh', '-c', MOUNT_SCRIPT, scratch, table]
  const [settings, privateRoot, devices, terminals] = ['proc-sys', 'private', 'dev', 'pts'].map((name) => at(name)) as [
    string,
    string,
    string,
    string,
  ]
  const sources = [...root.layers, ...root.directories.map(([source]) => source)]
  const layers = root.layers.map((_, index) => `shown/${index}`)
  const below = (index: number) => `shown/${root.layers.length + index}`
  const sourceOf = (place: WritablePath) => at('places', place.path.replaceAll('/', '-').slice(1))
  for (const path of [settings, privateRoot, devices, terminals, at('shown/dev'), at('empty')]) {
    mkdirSync(path, { recursive: true, mode: 0o755 })
  }
  for (const index of sources.keys()) mkdirSync(at(`shown/${index}`), { recursive: true })

  function writeTable(name: string, lines: readonly string[]): string {
    writeFileSync(at(name), lines.join(''))
    return at(name)
  }
  /** True if these lines can be mounted here. */
  function can(lines: readonly string[]): boolean {
    const [command = '', ...rest] = [...prefix(writeTable('mounts-trial', lines)), 'true']
    return spawnSync(command, rest, { env: { PATH }, stdio: 'ignore' }).status === 0
  }

  const shownLines = sources.map((source, index) => bindLine(source, at(`shown/${index}`)))
  const overlayLines = (points: readonly string[] = []) => [
    overlayLine(privateRoot, [...points, ...layers], 'nodev'),
    ...root.directories.map(([, target], index) => overlayLine(join(privateRoot, target), [below(index)], 'nodev')),
  ]
  const deviceLines = [bindLine('/dev', at('shown/dev')), overlayLine(devices, ['shown/dev'], 'noexec')]
  const options = `newinstance,ptmxmode=0666,mode=620,max=${TERMINALS}`
  const terminalLines = [`devpts ${escaped(terminals)} devpts nosuid,noexec,${options} 0 0\n`]
  const settingsLines = [bindLine('/proc/sys', settings)]
  const placeLines = (places: readonly WritablePath[], uid: number) =>
    places.map((place) => `errand ${escaped(sourceOf(place))} tmpfs nosuid,nodev,${tmpfsOptions(place, uid)} 0 0\n`)

  const trial = writablePaths({ workspaceMiB: 1, files: 1000 } as SandboxLimits)
  for (const place of trial) mkdirSync(sourceOf(place), { recursive: true })
  const countsFiles = can(placeLines(trial, 0))
  const ownsRoot = countsFiles && can([...shownLines, ...overlayLines()])
  // Devices cannot be opened on an overlay that was mounted in a user namespace.
  const ownsDevices = ownsRoot && isRoot && can(deviceLines)
  const countsTerminals = countsFiles && can(terminalLines)
  // A mount below /proc/sys, such as binfmt_misc, may prevent it for an ordinary user.
  const opensSettings = !countsFiles || !can(settingsLines)
  if (!countsFiles && uidOf) throw new Error('The sandbox cannot mount what it needs, though it runs as root.')
  const common = [
    ...(opensSettings ? [] : settingsLines),
    ...(ownsDevices ? deviceLines : []),
    ...(countsTerminals ? terminalLines : []),
  ]
  const near = ownsRoot ? privateRoot : root.layers[0]!
  const systems = [
    ...['--proc', '/proc', '--dev', '/dev'],
    ...(ownsDevices ? Object.keys(DEVICES) : []).flatMap((name) => ['--dev-bind', join(devices, name), `/dev/${name}`]),
    ...(countsTerminals ? ['--dev-bind', terminals, '/dev/pts'] : []),
    ...(opensSettings ? [] : ['--ro-bind', settings, '/proc/sys']),
    ...[...MASKED.files, '/proc/cmdline'].flatMap((path) => ['--ro-bind', join(near, EMPTY_FILE), path]),
    ...MASKED.directories.flatMap((path) => ['--ro-bind', join(near, EMPTY_DIRECTORY), path]),
  ]

  /** Overlays of the mounted directories. The root is read-only, so their mount points are in a layer above it. */
  function mountLines(slot: number, mounts: readonly Mount[]): string[] {
    const points = `points-${slot}`
    rmSync(at(points), { recursive: true, force: true })
    for (const { target } of mounts) mkdirSync(at(points, target), { recursive: true, mode: 0o755 })
    return [
      ...overlayLines(mounts.length > 0 ? [points] : []),
      ...mounts.map(({ target }, index) => overlayLine(join(privateRoot, target), [`mounts/${index}`], 'nodev')),
    ]
  }

  return {
    countsFiles,
    opensSettings,
    ownsRoot,
    ownsDevices,
    countsTerminals,
    prepare(slot, limits, mounts) {
      const places = writablePaths(limits)
      if (!countsFiles) {
        const shown = mounts.flatMap(({ source, target }) => ['--ro-bind', source, target])
        const plain = plainArguments(root, (index) => sources[index]!)
        return { before: [], root: [...plain, ...systems], places: [...places.flatMap(plainTmpfs), ...shown] }
      }
      const nearby = mounts.map(({ source, target }, index) => ({ source, target, near: at(`mounts/${index}`) }))
      for (const { near } of nearby) mkdirSync(near, { recursive: true })
      const lines = [
        ...shownLines,
        ...nearby.map(({ source, near }) => bindLine(source, near)),
        ...(ownsRoot ? mountLines(slot, mounts) : []),
        ...common,
        ...placeLines(places, uidOf?.(slot) ?? 0), // the host's own uid is 0 in the user namespace
      ]
      const whole = ownsRoot ? ['--ro-bind', privateRoot, '/'] : plainArguments(root, (index) => at(`shown/${index}`))
      return {
        before: prefix(writeTable(`mounts-${slot}`, lines)),
        root: [...whole, ...systems],
        places: [
          ...places.flatMap((place) => ['--bind', sourceOf(place), place.path]),
          ...(ownsRoot ? [] : nearby.flatMap(({ near, target }) => ['--ro-bind', near, target])),
        ],
      }
    },
    prepareTemplate() {
      if (!ownsDevices || !countsTerminals) throw new Error('no overlays, devices or terminals can be mounted here')
      const inside = (path: string) => `/run/errand/${path}`
      mkdirSync(at('devices'), { recursive: true })
      const table = writeTable('mounts-template', [...shownLines, ...overlayLines()])
      return {
        before: [...prefix(table), 'sh', '-c', DEVICES_SCRIPT, at('devices')],
        root: ['--ro-bind', privateRoot, '/', '--proc', '/proc', '--dev', '/dev'],
        given: [...sources.map((_, index) => `shown/${index}`), 'empty', 'devices'].map((path) => [
          at(path),
          inside(path),
        ]),
        plan: {
          lower: lowerOf(layers.map(inside), inside('empty')),
          directories: root.directories.map(([, target], index) => [
            lowerOf([inside(below(index))], inside('empty')),
            target,
          ]),
          devices: inside('devices'),
          terminals: TERMINALS,
          masked: MASKED,
        },
      }
    },
  }
}

/** Makes 256 directories of devices in $0 and executes the rest. Copies them, because `mknod` makes one device a call. */
const DEVICES_SCRIPT = `mount --no-mtab -t tmpfs -o mode=755,nosuid,noexec,size=8m,nr_inodes=8k errand "$0" && cd "$0" &&
mkdir -p 0/0/pts 0/0/shm && umask 0 &&
${Object.entries(DEVICES)
  .map(([name, [major, minor]]) => `mknod -m 666 0/0/${name} c ${major} ${minor} &&`)
  .join(' ')}
${Object.entries(DEVICE_LINKS)
  .map(([name, target]) => `ln -s ${target} 0/0/${name} &&`)
  .join(' ')}
for n in 1 2 3 4 5 6 7 8 9 a b c d e f; do cp -a 0/0 0/$n || exit; done &&
for n in 1 2 3 4 5 6 7 8 9 a b c d e f; do cp -a 0 $n || exit; done &&
{ prlimit --pid $$ --sigpending=unlimited --msgqueue=unlimited 2>/dev/null; cd / && exec "$@"; }`

/** Options of `mount`. */
export function tmpfsOptions({ mebibytes, files, mode }: WritablePath, uid: number): string {
  return `size=${mebibytes * MIB},nr_inodes=${files},mode=${mode},uid=${uid},gid=${uid}`
}

function plainTmpfs({ path, mebibytes, mode }: WritablePath): string[] {
  return ['--perms', mode, '--size', `${mebibytes * MIB}`, '--tmpfs', path]
}

function bindLine(source: string, target: string): string {
  return `${escaped(source)} ${escaped(target)} none bind 0 0\n`
}

/** An overlay without an upper layer needs two lower ones. */
function lowerOf(layers: readonly string[], empty: string): string {
  return (layers.length > 1 ? layers : [empty, ...layers]).join(':')
}

function overlayLine(target: string, layers: readonly string[], flag: 'nodev' | 'noexec'): string {
  return `overlay ${escaped(target)} overlay ro,nosuid,${flag},lowerdir=${lowerOf(layers, 'empty')} 0 0\n`
}

/** Escapes a path for fstab: characters that end a field become octal numbers. */
function escaped(path: string): string {
  return path.replaceAll(/[\s\\#"]/g, (character) => `\\${character.charCodeAt(0).toString(8).padStart(3, '0')}`)
}
