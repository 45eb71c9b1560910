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
      doc: 'bubblewrap: a directory tree to be the sandboxes’ root, or an image of the Docker at `sandbox.dockerHost`, which is exported once; `script/rootfs` makes either. Without it the host’s `/usr`, read-only.',
    },
    forkServer: {
      kind: 'choice',
      values: ['auto', 'on', 'off'],
      fallback: 'auto',
      doc: 'bubblewrap: whether sandboxes are forked from a template that stands ready, which takes a fraction of the time. `auto`: where Errand runs as root and the start’s attacks on such a sandbox are all refused; `on`: so, or Errand does not start; `off`: each is started whole. A sandbox that is shown skills is started whole.',
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
