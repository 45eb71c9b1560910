/**
 * What a way of isolating must offer: cells. A cell is an isolated place with the runner as its first process, spoken to
 * over stdin and stdout; everything else (sessions, steps, files, pool, epochs) is the same whatever made the cell.
 */
import type { Readable, Writable } from 'node:stream'
import type { Mount, Profile, SandboxLimits } from './port.ts'

/** What a cell is made to. */
export interface CellShape {
  readonly limits: SandboxLimits
  readonly profile: Profile
  readonly mounts: readonly Mount[]
}

/** What the kernel has counted in a cell so far; 0 where nobody counts. */
export interface Counters {
  /** Processes ended for the memory limit. */
  readonly memoryKills: number
  /** Times that no further process was given out. */
  readonly forksRefused: number
  /** Time slices in which it ran, and those of them in which it had used up its share before the end. */
  readonly periods: number
  readonly throttled: number
}

/** Files that one process may have open; every driver sets it. */
export const OPEN_FILES = 1024

export interface Cell {
  readonly stdin: Writable
  readonly stdout: Readable
  /** Resolves when the cell has ended by itself or was ended, with the last words on its stderr. */
  readonly exited: Promise<string>
  counters(): Counters
  /** Ends it. Resolves when it is checked that no process is left and nothing is kept of it; idempotent. */
  end(): Promise<void>
}

export interface Driver {
  readonly name: string
  /** Attacks of the self-test that it can't refuse on this host, and says so in `holds`. Any other one closes it. */
  readonly selfTestExceptions: readonly string[]
  /** Throws an Error whose message is a sentence for the operator. */
  launch(shape: CellShape): Promise<Cell>
  /** What launches one with PRELOADED (inside.ts) in its Python; undefined where none is to be had at once. Asking gets them ready. */
  preloaded?(shape: CellShape): (() => Promise<Cell>) | undefined
  /** Removes what dead hosts have left behind: processes, cgroups. */
  sweep(): Promise<void>
  /** What holds and what does not with these limits, in words. */
  describeLimits(limits: SandboxLimits): { readonly enforced: string[]; readonly notEnforced: string[] }
  /** How it makes cells, in words, where it has more than one way. */
  readonly made?: string
  /** A faster way to the same cells, if the driver has one. */
  readonly faster?: {
    /** `auto`: if it opens and passes the self-test; `on`: or the host does not start. */
    readonly use: 'auto' | 'on' | 'off'
    /** The setting that says so. */
    readonly setting: string
    /** Throws an Error with a sentence if there is none on this host. */
    open(): Promise<FasterDriver>
  }
  close(): Promise<void>
}

/** Ended before the driver that it is of, whose it is to sweep and to close. */
export interface FasterDriver extends Driver {
  /** Whether it can make such a cell. */
  canMake(shape: CellShape): boolean
  /** For the `code` profile of what it suits. Throws an Error with a sentence where there can be none on this host. */
  openPreloaded(): Promise<PreloadedDriver>
}

/** Makes cells with PRELOADED in their Python. */
export interface PreloadedDriver extends Driver {
  /** Whether `launch` makes one at once; else it rejects. */
  ready(): boolean
}

/** The private directory of the sandbox host. Its hash makes names that must be unique on the machine. */
export interface HostDirectory {
  readonly stateDir: string
}

/** A setting of a driver: `sandbox.<name>` in the configuration. */
export type DriverSetting = { readonly doc: string } & (
  | { readonly kind: 'choice'; readonly values: readonly string[]; readonly fallback: string }
  | { readonly kind: 'text'; readonly must: string; readonly pattern: RegExp; readonly fallback: string }
  /** Absent by default. `orElse`: what it may be instead of a path. */
  | { readonly kind: 'path'; readonly must: string; readonly orElse: RegExp }
)

/** What a driver's folder exports to the registry (drivers.ts). Must load nothing of the driver itself. */
export interface DriverDefinition<Options> {
  /** What sets it apart, for the configuration reference: follows the driver's name. */
  readonly summary: string
  /** Its own settings by their names in `Options`. */
  readonly settings: Readonly<Record<string, DriverSetting>>
  /** Programs that it needs on this machine, for `doctor`. */
  readonly programs: readonly { readonly name: string; readonly debianPackage: string }[]
  /** A sentence for the operator if another setting of `sandbox` cannot be used with this driver. */
  conflict(settings: Readonly<Record<string, unknown>>): string | undefined
  /** Paths of the host that the self-test must not find inside. */
  hiddenPaths(options: Options): readonly string[]
  /** Throws an Error with a sentence for the operator if no sandbox can be made here. */
  open(options: Options & HostDirectory): Promise<Driver>
}

/** pino's shape. */
export interface Log {
  debug(details: object, message: string): void
  info(details: object, message: string): void
  warn(details: object, message: string): void
  error(details: object, message: string): void
}
