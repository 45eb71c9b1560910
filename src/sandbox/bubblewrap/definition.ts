/** The bubblewrap driver's entry in the registry. It loads the driver only when it is opened. */
import { IMAGE_NAME } from '../docker/options.ts'
import type { DriverDefinition } from '../driver.ts'
import type { BubblewrapOptions } from './options.ts'

export const bubblewrap: DriverDefinition<BubblewrapOptions> = {
  summary: 'needs no daemon',
  settings: {
    rootfs: {
      kind: 'path',
      must: 'the path of a directory, or the name of an image',
      orElse: IMAGE_NAME,
      doc: 'bubblewrap: root file system of the sandboxes, as a directory or as an image of the Docker daemon at `sandbox.dockerHost`, which is exported once. `script/rootfs` builds either. Default: the host’s `/usr`, read-only.',
    },
    forkServer: {
      kind: 'choice',
      values: ['auto', 'on', 'off'],
      fallback: 'auto',
      doc: 'bubblewrap: whether sandboxes are forked from a running template, which is much faster than starting each one. `auto`: fork them if Errand runs as root and such a sandbox passes the self-test. `on`: as `auto`, but Errand does not start if that is impossible. `off`: never fork them. A sandbox with skills is never forked.',
    },
  },
  programs: [
    { name: 'bwrap', debianPackage: 'bubblewrap' },
    { name: 'python3', debianPackage: 'python3' },
  ],
  conflict: () => undefined,
  // A configured tree has its own /etc and /var.
  hiddenPaths: ({ rootfs }) => (rootfs === undefined ? ['/etc/shadow', '/root', '/home', '/var'] : []),
  open: async (options) => (await import('./bubblewrap.ts')).openBubblewrap(options),
}
