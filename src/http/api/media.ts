import * as z from 'zod';
import { iso } from '../../core/clock.ts';
import { invalid, isRefusal, type Refusal, refuse } from '../../core/refusal.ts';
import { accountLinkBase } from '../../delivery/prepare.ts';
import { mediaFileName } from '../../media/files.ts';
import { IMAGE_TYPES, type ImageType } from '../../media/images.ts';
import { MAX_MEDIA, MAX_MEDIA_BYTES, type Media } from '../../media/media.ts';
import type { Context } from '../../store/context.ts';
import type { DescribedMedia } from '../../store/media.ts';
import { fileInBody } from '../body/file-body.ts';
import { MEDIA_ROUTE } from '../public/media.ts';
import { mapResult, type Route, routesOf } from '../route.ts';
import { definedFields, line, messageResult, optionalLine } from './fields.ts';
import { nameSearch, pageOf, pagesBySeq, paging, seqEnd } from './paging.ts';

/* `/web-setup/media`: images that the account's mail shows. */

const route = routesOf({ tag: 'Media', scope: 'setup', permissions: ['read', 'prepare'] });

const name = line(255).describe('Default: the name of the file.');
const alt = optionalLine(1000).describe('What the image shows, for people who do not see it.');

const media = z
  .object({
    mediaId: z.string(),
    name: z.string(),
    alt: z.string().describe('Empty for none.'),
    url: z
      .url()
      .describe(
        'The public address, for the `src` of an image. It works under every link host of the account.',
      ),
    contentType: z.enum(IMAGE_TYPES),
    width: z.int().describe('Pixels.'),
    height: z.int().describe('Pixels.'),
    animated: z.boolean(),
    size: z.int().describe('Bytes.'),
    createdAt: z.iso.datetime(),
    updatedAt: z.iso.datetime(),
  })
  .meta({ id: 'Media' });
const result = z.object({ media }).meta({ id: 'MediaResult' });

const EXAMPLE: z.output<typeof media> = {
  mediaId: 'media_1769860800000_5w7e9r1t3y5u',
  name: 'logo.png',
  alt: 'Example Shop',
  url: 'https://link.example.com/m/4kT9wQ2mZ7xB1nV5cL8jH3gF6dS0aP4oI7uY2tR9eWq.png',
  contentType: 'image/png',
  width: 600,
  height: 200,
  animated: false,
  size: 18_432,
  createdAt: '2026-01-31T12:00:00.000Z',
  updatedAt: '2026-01-31T12:00:00.000Z',
};
const one = { data: result, example: { media: EXAMPLE } };

/** Bytes of a multipart body around the file. */
const MAX_FORM_BYTES = 64 * 1024;

export function mediaRoutes(
  { tables }: Pick<Context, 'tables'>,
  { media: service, publicUrl }: { media: Media; publicUrl: string },
): Route[] {
  const baseOf = (accountId: string): string => accountLinkBase(tables, publicUrl, accountId);
  const present = (row: DescribedMedia, base: string): z.output<typeof media> => ({
    mediaId: row.media_id,
    name: row.name,
    alt: row.alt,
    url: `${base}/${MEDIA_ROUTE}/${mediaFileName(row)}`,
    // Sound: the check of the content determined it.
    contentType: row.type as ImageType,
    width: row.width,
    height: row.height,
    animated: row.frames > 1,
    size: row.size,
    createdAt: iso(row.created_at),
    updatedAt: iso(row.updated_at),
  });
  const presentOne = (row: DescribedMedia) => ({ media: present(row, baseOf(row.account_id)) });

  return [
    route('GET /web-setup/media', {
      operationId: 'listMedia',
      summary: 'List images, newest first',
      query: z.object({ search: nameSearch, ...paging }),
      page: pagesBySeq('media'),
      response: pageOf('media', media, EXAMPLE, { description: 'A page of images.', id: 'MediaList' }),
      narrowBy: ['limit'],
      handle: async ({ caller: { accountId }, query: { search, limit }, after }) => {
        const page = await service.list({ accountId, beforeSeq: after, limit, search });
        const base = baseOf(accountId);
        return { media: page.rows.map((row) => present(row, base)), ...seqEnd(page) };
      },
    }),
    route('POST /web-setup/media', {
      operationId: 'uploadMedia',
      summary: 'Upload an image',
      description: `The body is the file (\`curl --data-binary @logo.png\`), or a form with the file in the field \`file\` and optionally \`name\` and \`alt\` (\`curl -F file=@logo.png\`). PNG, JPEG, GIF and WebP up to ${MAX_MEDIA_BYTES / 2 ** 20} MiB and 50 million pixels; the type is determined by the content. Comments, the place and other data about a photo, and thumbnails are removed. A file that is damaged or continues behind the image is refused, and so are SVG, AVIF and everything else. An account has up to ${MAX_MEDIA} images; the same content is stored once.`,
      file: [...IMAGE_TYPES, 'multipart/form-data'],
      limit: MAX_MEDIA_BYTES + MAX_FORM_BYTES,
      query: z.object({
        filename: z.string().max(255).optional().describe('The name of the file, if the body is the file.'),
        name: name.optional(),
        alt: alt.optional(),
      }),
      response: { status: 201, description: 'The uploaded image.', ...one },
      refusals: ['LIMIT_REACHED', 'PAYLOAD_TOO_LARGE'],
      handle: async ({ caller, file: body, headers, query }) => {
        const sent = fileInBody(body, headers['content-type'] ?? '');
        if (isRefusal(sent)) return sent;
        const { file, fileName, fields } = sent;
        if (file.length > MAX_MEDIA_BYTES) return tooLarge(file.length);
        const named = formFields.safeParse({
          name: query.name ?? fields['name'] ?? nameOfFile(query.filename ?? fileName),
          alt: query.alt ?? fields['alt'] ?? '',
        });
        if (!named.success) return fieldRefusal(named.error);
        return mapResult(await service.upload(caller.accountId, { ...named.data, bytes: file }), presentOne);
      },
    }),
    route('GET /web-setup/media/{mediaId}', {
      operationId: 'getMedia',
      summary: 'Get an image',
      description: 'The file is at `url`.',
      response: { description: 'The image.', ...one },
      refusals: ['MEDIA_NOT_FOUND'],
      handle: ({ caller, params }) => mapResult(service.get(caller.accountId, params.mediaId), presentOne),
    }),
    route('PATCH /web-setup/media/{mediaId}', {
      operationId: 'updateMedia',
      summary: 'Update the name or the description of an image',
      body: z.object({ name: line(255).optional(), alt: alt.optional() }).meta({ id: 'MediaPatch' }),
      example: { alt: 'Example Shop' },
      response: { description: 'The updated image.', ...one },
      refusals: ['MEDIA_NOT_FOUND'],
      handle: async ({ caller, params, body }) =>
        mapResult(await service.update(caller.accountId, params.mediaId, definedFields(body)), presentOne),
    }),
    route('DELETE /web-setup/media/{mediaId}', {
      operationId: 'deleteMedia',
      summary: 'Delete an image',
      description:
        'Its address answers 404 from then on, in mail that was sent, too. Refused while a template, a campaign (also one that was sent) or a sequence contains the address, unless `force=true`.',
      query: z.object({ force: z.enum(['true', 'false']).optional() }),
      response: {
        description: 'The image was deleted.',
        data: messageResult,
        example: { message: 'The image has been deleted.' },
      },
      refusals: ['MEDIA_NOT_FOUND', 'MEDIA_IN_USE'],
      narrowBy: [],
      handle: async ({ caller, params, query }) => {
        const removed = await service.remove(caller.accountId, params.mediaId, query.force === 'true');
        return isRefusal(removed) ? removed : { message: 'The image has been deleted.' };
      },
    }),
  ];
}

function tooLarge(bytes: number): Refusal {
  const reason = `has ${bytes} bytes: at most ${MAX_MEDIA_BYTES} are possible`;
  return refuse('PAYLOAD_TOO_LARGE', `file: ${reason}`, { details: [{ field: 'file', message: reason }] });
}

const formFields = z.object({ name: line(255), alt: optionalLine(1000) });

function fieldRefusal({ issues: [issue] }: z.ZodError): Refusal {
  return invalid(String(issue?.path[0] ?? 'file'), issue?.message ?? 'is invalid');
}

/** The name of a file without the folders that some programs send. */
function nameOfFile(path: string | undefined): string {
  const base =
    (path ?? '')
      .split(/[\\/]/)
      .at(-1)
      ?.replaceAll(/\p{Cc}/gu, '')
      .trim() ?? '';
  return base === '' ? 'image' : base.slice(0, 255).toWellFormed();
}
