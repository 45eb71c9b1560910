/** Maximum size of a skill. The operator can change both limits. */
export interface SkillLimits {
  /** Total size of a skill's unpacked files, bytes. */
  readonly skillBytes: number
  /** Number of files. */
  readonly skillFiles: number
}
