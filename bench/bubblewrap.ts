/** For `openSandboxes`: bubblewrap, with nothing of the other drivers' settings. */
export const BUBBLEWRAP = {
  driver: 'bubblewrap',
  rootfs: undefined,
  forkServer: 'auto',
  image: 'none',
  dockerHost: 'unix:///none',
  runtime: 'auto',
} as const
