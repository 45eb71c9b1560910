/** Images for the model. Images above the providers' limits are scaled down, inside the sandbox. */
import { imageDimensionsFromData } from 'image-dimensions'
import type { Sandbox } from '../sandbox/port.ts'
import type { ToolContext, ToolOutcome } from './port.ts'
import { runProgram } from './run-program.ts'

const MIB = 1024 * 1024
/** Image headers end before this offset. Bounds the time that a hostile image can take on this thread. */
const HEAD_BYTES = MIB
/** 5 MiB in base64, which is Anthropic's limit. Other providers allow more. */
export const MAX_IMAGE_BYTES = 3.75 * MIB
/** Pixels a side. Anthropic's limit for requests with many images; REFUSED_SIDE is its limit for a single one. */
const MAX_SIDE = 2_000
const REFUSED_SIDE = 8_000
/** The size to which providers scale larger images, in pixels a side. */
export const SHOWN_SIDE = 1_568

/** Python code for Pillow. Applies the EXIF orientation, and puts transparent images on white if they become JPEGs. */
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
  if (width === 0 || height === 0) return { output: `\`${path}\` looks like an image (${mimeType}) but can't be read.` }
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
    output: `${what}, more than can be shown (${MAX_IMAGE_BYTES} bytes, ${REFUSED_SIDE} pixels a side). Scale it down with code_execution, then read the result.`,
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

/** An absolute path, which a program can't mistake for an option. */
export function sandboxPath(path: string): string {
  return path.startsWith('/') ? path : `/workspace/${path}`
}
