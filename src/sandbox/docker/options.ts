/** Settings of the docker driver. */
export interface DockerOptions {
  /** The image that sandboxes are made of. */
  readonly image: string
  /** The daemon's socket: `unix:///var/run/docker.sock`. */
  readonly dockerHost: string
  /** One of the daemon's runtimes; `auto`: gVisor's if the daemon has it, else its default. */
  readonly runtime: string
}

export const IMAGE_NAME = /^[A-Za-z0-9][\w./:@-]{0,254}$/
