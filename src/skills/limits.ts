/** How large a skill may be; the operator may change both. */
export interface SkillLimits {
  /** All files of a skill together, unpacked, bytes. */
  readonly skillBytes: number
  /** Files of a skill. */
  readonly skillFiles: number
}
