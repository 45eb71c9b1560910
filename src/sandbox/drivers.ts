/**
 * The registry of sandbox drivers. To add one: its folder, with a `definition.ts`, and its name in DRIVERS. The
 * configuration, the host, `doctor` and the documentation read the definitions and name no driver themselves.
 */
import { bubblewrap } from './bubblewrap/definition.ts'
import { docker } from './docker/definition.ts'
import type { DriverDefinition, DriverSetting } from './driver.ts'

export const DRIVERS = { bubblewrap, docker } as const

export type DriverName = keyof typeof DRIVERS

type OptionsOf<Definition> = Definition extends DriverDefinition<infer Options> ? Options : never
type Intersection<Union> = (Union extends unknown ? (each: Union) => void : never) extends (all: infer All) => void
  ? All
  : never

/** The settings of all drivers; each driver reads its own. */
export type DriverOptions = Intersection<OptionsOf<(typeof DRIVERS)[DriverName]>>

/** The chosen driver and its settings: what a running host cannot change. */
export type DriverChoice = DriverOptions & { readonly driver: DriverName }

export const DRIVER_NAMES = Object.keys(DRIVERS) as DriverName[]

/** Only the driver and the drivers' settings, from an object that may hold more. */
export function driverChoice(from: DriverChoice): DriverChoice {
  const names = ['driver', ...DRIVER_NAMES.flatMap((name) => Object.keys(DRIVERS[name].settings))]
  return Object.fromEntries(names.map((name) => [name, from[name as keyof DriverChoice]])) as unknown as DriverChoice
}

/** A driver with the defaults of all settings. */
export function defaultChoice(driver: DriverName): DriverChoice {
  const settings = DRIVER_NAMES.flatMap((name) => Object.entries<DriverSetting>(DRIVERS[name].settings))
  const defaults = settings.map(([name, setting]) => [name, 'fallback' in setting ? setting.fallback : undefined])
  return { driver, ...Object.fromEntries(defaults) } as DriverChoice
}
