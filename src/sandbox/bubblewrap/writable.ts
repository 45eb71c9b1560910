/**
 * The writable places of a cell: a tmpfs each, bounded in bytes and in number of files. bubblewrap's own `--tmpfs` cannot
 * bound the files, so they are mounted in a mount namespace that the cell is launched from, and bound into it. An
 * ordinary user gets one inside a user namespace; where that is forbidden, bubblewrap's tmpfs stands in.
 * There too, what the cell's uid could not come to by itself is shown at places of ours: directories, read-only inside.
 */
import { spawnSync } from 'node:child_process'
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { type Place, placesOf } from '../inside.ts'
import type { Mount, SandboxLimits } from '../port.ts'

/** In a mount namespace of its own: mounts what the table $0 says, then becomes what follows. One `mount` for all: 2 ms. */
const MOUNT_SCRIPT = 'mount --no-mtab --internal-only --all --fstab "$0" && exec "$@"'
const MIB = 1024 * 1024

export interface Writable {
  /** Whether the number of files is bounded. */
  readonly countsFiles: boolean
  /** Whether a cell can write the settings of its own namespaces: sizes of its message queues, highest process number. */
  readonly opensSettings: boolean
  /** What stands before the command of a cell, and bubblewrap's arguments that make the places and show the mounts. */
  prepare(
    slot: number,
    limits: SandboxLimits,
    mounts: readonly Mount[],
  ): { readonly before: string[]; readonly arguments: string[] }
  /** What stands before the command of what makes its own places, so that it comes to what is `shown`. */
  readonly beforeTemplate: string[]
}

export interface WritableOptions {
  /** Ours to write to. */
  readonly scratch: string
  /** The host's uid of a slot's cell; undefined: our own. */
  readonly uidOf: ((slot: number) => number) | undefined
  /** Files of the host to be shown at places of ours, so that the cell's uid can come to them. */
  readonly shown: readonly (readonly [source: string, target: string])[]
}

/** Throws an Error with a sentence where `shown` is not empty and nothing can be mounted. */
export function createWritable({ scratch, uidOf, shown }: WritableOptions): Writable {
  const isRoot = process.getuid?.() === 0
  const namespace = ['unshare', ...(isRoot ? [] : ['--user', '--map-root-user']), '--mount', '--']
  const sourceOf = (place: Place) => join(scratch, 'places', place.path.replaceAll('/', '-').slice(1))
  const settings = join(scratch, 'proc-sys')
  const prefix = (table: string) => [...namespace, 'sh', '-c', MOUNT_SCRIPT, table]

  /** /proc/sys belongs to who looks at it: a bound one shows a cell its own, and can be made read-only. */
  let overlaid: typeof shown = [...shown, ['/proc/sys', settings]]

  function writeTable(slot: number, places: readonly Place[], more: typeof shown = []): string {
    const uid = uidOf?.(slot) ?? 0 // our own is 0 in the user namespace
    const lines = places.map((place) => {
      return `errand ${escaped(sourceOf(place))} tmpfs nosuid,nodev,${tmpfsOptions(place, uid)} 0 0\n`
    })
    const binds = [...overlaid, ...more].map(bindLine)
    const table = join(scratch, `mounts-${slot}`)
    writeFileSync(table, [...lines, ...binds].join(''))
    return table
  }

  const trial = placesOf({ workspaceMiB: 1, files: 1000 } as SandboxLimits)
  for (const place of trial) mkdirSync(sourceOf(place), { recursive: true })
  mkdirSync(settings, { recursive: true })
  const attempt = () => {
    const [command = '', ...rest] = [...prefix(writeTable(0, trial)), 'true']
    return spawnSync(command, rest, { env: { PATH: '/usr/sbin:/usr/bin:/sbin:/bin' }, encoding: 'utf8' })
  }
  let { status, stderr } = attempt()
  const opensSettings = status !== 0
  if (opensSettings) {
    overlaid = shown // what is mounted below it, binfmt_misc, may keep an ordinary user from it
    ;({ status, stderr } = attempt())
  }
  const countsFiles = status === 0
  if (!countsFiles && shown.length > 0) {
    throw new Error(`The sandbox cannot mount what it needs, though it runs as root: ${stderr.trim()}`)
  }
  const settingsArguments = opensSettings ? [] : ['--ro-bind', settings, '/proc/sys']

  return {
    countsFiles,
    opensSettings,
    get beforeTemplate() {
      if (shown.length === 0) return []
      const table = join(scratch, 'mounts-template')
      writeFileSync(table, shown.map(bindLine).join(''))
      return prefix(table)
    },
    prepare(slot, limits, mounts) {
      const places = placesOf(limits)
      if (!countsFiles) return { before: [], arguments: [...places.flatMap(plainTmpfs), ...mounts.flatMap(readOnly)] }
      // Our own uid comes to the mounts as they are; one that owns nothing does not.
      const near = uidOf ? mounts.map((mount, i) => ({ ...mount, source: join(scratch, 'mounts', `${i}`) })) : mounts
      if (uidOf) for (const { source } of near) mkdirSync(source, { recursive: true })
      const binds = uidOf ? mounts.map(({ source }, i) => [source, near[i]!.source] as const) : []
      return {
        before: prefix(writeTable(slot, places, binds)),
        arguments: [
          ...settingsArguments,
          ...places.flatMap((place) => ['--bind', sourceOf(place), place.path]),
          ...near.flatMap(readOnly),
        ],
      }
    },
  }
}

/** As `mount` takes them. */
export function tmpfsOptions({ mebibytes, files, mode }: Place, uid: number): string {
  return `size=${mebibytes * MIB},nr_inodes=${files},mode=${mode},uid=${uid},gid=${uid}`
}

function readOnly({ source, target }: Mount): string[] {
  return ['--ro-bind', source, target]
}

function plainTmpfs({ path, mebibytes, mode }: Place): string[] {
  return ['--perms', mode, '--size', `${mebibytes * MIB}`, '--tmpfs', path]
}

function bindLine([source, target]: readonly [source: string, target: string]): string {
  return `${escaped(source)} ${escaped(target)} none bind 0 0\n`
}

/** As fstab wants it: what would end a field, as an octal number. */
function escaped(path: string): string {
  return path.replaceAll(/[\s\\#"]/g, (character) => `\\${character.charCodeAt(0).toString(8).padStart(3, '0')}`)
}
