/** An image as a model may be shown it: within what every provider takes, made smaller in the sandbox where it is not. */
import { imageDimensionsFromData } from 'image-dimensions'
import type { Sandbox } from '../sandbox/port.ts'
import type { ToolContext, ToolOutcome } from './port.ts'
import { runProgram } from './run-program.ts'

const MIB = 1024 * 1024
/** An image says its size before so many bytes; a hostile one is not searched through on this thread. */
const HEAD_BYTES = MIB
/** Anthropic takes 5 MiB an image, in base64; the others more. */
export const MAX_IMAGE_BYTES = 3.75 * MIB
/** Anthropic takes 8,000 pixels a side, and 2,000 of many images. */
const MAX_SIDE = 2_000
const REFUSED_SIDE = 8_000
/** What all providers bring larger ones down to. */
export const SHOWN_SIDE = 1_568

/** Pillow's, wherever the sandbox's Python has it. Orientation is in the pixels then; what is clear is on white if it must be. */
const SHRINK = `import io, sys
from PIL import Image, ImageOps
image = ImageOps.exif_transpose(Image.open(sys.argv[1]))
image.thumbnail((${SHOWN_SIDE}, ${SHOWN_SIDE}))
made = io.BytesIO()
if image.mode not in ("RGB", "L", "CMYK"):
    image = image.convert("RGBA")
    image.save(made, "PNG")
if not 0 < made.tell() < ${MAX_IMAGE_BYTES}:
    made = io.BytesIO()
    if image.mode == "RGBA":
        image = Image.alpha_composite(Image.new("RGBA", image.size, "white"), image)
    image.convert("RGB").save(made, "JPEG", quality=85)
sys.stdout.buffer.write(made.getvalue())`
const WITH_PILLOW = `for python in /usr/bin/python3 /usr/local/bin/python3; do
  "$python" -I -c 'import PIL' 2>/dev/null && exec "$python" -I -c "$0" "$1"
done
exit 127`

export async function presentImage(
  path: string,
  bytes: Uint8Array,
  mimeType: string,
  context: ToolContext,
): Promise<ToolOutcome> {
  const { width = 0, height = 0 } = imageDimensionsFromData(bytes.subarray(0, HEAD_BYTES)) ?? {}
  const what = `\`${path}\` is an image (${mimeType}, ${width} × ${height}, ${bytes.length} bytes)`
  if (width === 0 || height === 0)
    return { output: `\`${path}\` begins like an image (${mimeType}) but can't be read.` }
  if (!context.vision) return { output: `${what}. This model can't be shown images; work on it with code_execution.` }
  if (bytes.length <= MAX_IMAGE_BYTES && Math.max(width, height) <= MAX_SIDE) {
    return { output: `${what}; it is shown here.`, media: [imagePart(mimeType, bytes)] }
  }
  const smaller = await shrink(await context.sandbox(), path, context)
  if (smaller) {
    const size = imageDimensionsFromData(smaller)!
    const type = `image/${size.type}`
    return {
      output: `${what}; it is shown here at ${size.width} × ${size.height}.`,
      media: [imagePart(type, smaller)],
    }
  }
  if (bytes.length <= MAX_IMAGE_BYTES && Math.max(width, height) <= REFUSED_SIDE) {
    return { output: `${what}; it is shown here.`, media: [imagePart(mimeType, bytes)] }
  }
  return {
    output: `${what}, more than can be shown (${MAX_IMAGE_BYTES} bytes, ${REFUSED_SIDE} pixels a side). Make it smaller with code_execution, then read that.`,
  }
}

export function imagePart(mimeType: string, bytes: Uint8Array) {
  return { type: 'image', mimeType, base64: Buffer.from(bytes).toString('base64') } as const
}

async function shrink(sandbox: Sandbox, path: string, context: ToolContext): Promise<Buffer | undefined> {
  const timeoutMs = Math.min(context.remainingMs(), 60_000)
  const terms = { maxBytes: MAX_IMAGE_BYTES, timeoutMs, signal: context.signal }
  const made = await runProgram(sandbox, ['sh', '-c', WITH_PILLOW, SHRINK, sandboxPath(path)], terms)
  return made.ok && imageDimensionsFromData(made.output) ? made.output : undefined
}

/** Never taken for an option. */
export function sandboxPath(path: string): string {
  return path.startsWith('/') ? path : `/workspace/${path}`
}
