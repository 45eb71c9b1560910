/**
 * The port to sandbox drivers. A driver makes cells: isolated environments with the runner as first process, connected by
 * stdin and stdout. Everything else (sessions, steps, files, pool, epochs) is the same for all drivers.
 */
import type { Readable, Writable } from 'node:stream'
import type { Mount, Profile, SandboxLimits } from './port.ts'

/** The requirements for a cell. */
export interface CellShape {
  readonly limits: SandboxLimits
  readonly profile: Profile
  readonly mounts: readonly Mount[]
}

/** The kernel's counters of a cell; 0 where there are none. */
export interface Counters {
  /** Processes killed for the memory limit. */
  readonly memoryKills: number
  /** Forks refused for the process limit. */
  readonly forksRefused: number
  /** Scheduler periods in which it ran, and those in which it was throttled. */
  readonly periods: number
  readonly throttled: number
}

/** Files that one process may have open, in every driver. */
export const OPEN_FILES = 1024

export interface Cell {
  readonly stdin: Writable
  readonly stdout: Readable
  /** Resolves with the end of its stderr when the cell has ended, by itself or by `end`. */
  readonly exited: Promise<string>
  counters(): Counters
  /** Ends it. Resolves after verifying that no process and no file is left. Idempotent. */
  end(): Promise<void>
}

export interface Driver {
  readonly name: string
  /**
   * Attacks of the self-test that it cannot refuse on this host; `describeLimits` says so. Any other attack that succeeds
   * keeps the host from starting.
   */
  readonly selfTestExceptions: readonly string[]
  /** Starts a cell. Throws an Error with a sentence for the operator. */
  launch(shape: CellShape): Promise<Cell>
  /**
   * Returns a function that starts a cell with PRELOADED (inside.ts) imported; undefined if none is ready. The first call
   * begins to prepare them.
   */
  preloaded?(shape: CellShape): (() => Promise<Cell>) | undefined
  /** Removes processes and cgroups that dead hosts have left. */
  sweep(): Promise<void>
  /** Describes what is enforced with these limits and what is not. */
  describeLimits(limits: SandboxLimits): { readonly enforced: string[]; readonly notEnforced: string[] }
  /** Completes "sandboxes are …", if the driver has several variants. */
  readonly made?: string
  /** A faster variant that makes the same cells, if the driver has one. */
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

/** A faster variant of a driver, which must be closed before the driver. It leaves `sweep` to the driver. */
export interface FasterDriver extends Driver {
  /** True if it can make such a cell. */
  canMake(shape: CellShape): boolean
  /** Opens the variant with packages imported, for cells of the profile `code`. Throws an Error with a sentence. */
  openPreloaded(): Promise<PreloadedDriver>
}

/** Makes cells with PRELOADED imported in their Python. */
export interface PreloadedDriver extends Driver {
  /** True if `launch` can make one at once. Otherwise it rejects. */
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

/** A driver's entry in the registry (drivers.ts). Must not load the driver itself before `open`. */
export interface DriverDefinition<Options> {
  /** Follows the driver's name in the configuration reference: `needs no daemon`. */
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

/** The part of pino's interface that this room uses. */
export interface Log {
  debug(details: object, message: string): void
  info(details: object, message: string): void
  warn(details: object, message: string): void
  error(details: object, message: string): void
}
