/** Risks of a kernel that sandboxes share with the host, for `notEnforced`. SECURITY.md has the whole list. */
export function sharedKernel(runtime?: string): string[] {
  const by = runtime === undefined ? '' : ` (${runtime})`
  return [
    `kernel: shared with the host${by}; for tenants hostile to each other take the docker driver with gVisor (sandbox.runtime: runsc), or a machine each`,
    'side channels: sandboxes on one kernel can measure each other’s load and signal by it (timing, /proc/stat, /proc/meminfo, /proc/loadavg), and record locks take memory that is not counted; gVisor hides the counters, only a machine each hides the timing (SECURITY.md)',
  ]
}
