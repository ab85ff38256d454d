import * as z from 'zod';
import {
  isPageLanguage,
  PAGE_LANGUAGES,
  PAGE_TEXTS,
  type PageLanguage,
} from '../../../accounts/page-texts.ts';
import {
  type PublicPageSettings,
  publicPagesPatchSchema,
  publicPagesSchema,
  type StoredPublicPages,
} from '../../../accounts/public-pages.ts';
import { refuse } from '../../../core/refusal.ts';
import { withoutNulls } from '../../../core/without-nulls.ts';
import { mapResult, type Route, routesOf } from '../../route.ts';

const route = routesOf({ tag: 'Public pages', scope: 'setup', permissions: ['read', 'account'] });

const languages = Object.keys(PAGE_LANGUAGES) as [PageLanguage, ...PageLanguage[]]; // the keys of a constant

const publicPages = publicPagesSchema
  .extend({ updatedAt: z.iso.datetime().optional().describe('Absent: never changed.') })
  .meta({ id: 'PublicPages' });

const EXAMPLE = {
  name: 'Example Shop',
  logoUrl: 'https://www.example.com/logo.png',
  colors: { accent: '#7a1fa2', background: null },
  language: 'de' as const,
  profileFields: [
    { field: 'firstName', label: null, labels: {} },
    { field: 'customFields.city', label: 'City', labels: { de: 'Ort' } },
  ],
  texts: { en: { 'unsubscribe.title': 'Sorry to see you go' } },
};

/**
 * `/web-setup/public-pages`: name, logo, colors and texts of the pages that recipients see, and the fields that they may
 * change there.
 */
export function publicPagesRoutes({ pages }: { pages: PublicPageSettings }): Route[] {
  return [
    route('GET /web-setup/public-pages', {
      operationId: 'getPublicPages',
      summary: 'Get the settings of the public pages',
      response: {
        description: 'The settings; `null` is the default.',
        data: publicPages,
        example: { ...EXAMPLE, updatedAt: '2026-01-31T12:00:00.000Z' },
      },
      handle: ({ caller }) => present(pages.get(caller.accountId)),
    }),
    route('PUT /web-setup/public-pages', {
      operationId: 'updatePublicPages',
      summary: 'Update the settings of the public pages',
      description:
        'Replaces the fields that are given, each as a whole; `null` restores a default. The settings of an account have at most 128 KiB.',
      body: publicPagesPatchSchema,
      readOnly: ['updatedAt'],
      example: EXAMPLE,
      response: {
        description: 'The updated settings.',
        data: publicPages,
        example: { ...EXAMPLE, updatedAt: '2026-01-31T12:00:00.000Z' },
      },
      handle: async ({ caller, body }) => mapResult(await pages.put(caller.accountId, body), present),
    }),
    route('GET /web-setup/public-pages/texts/{language}', {
      operationId: 'getPublicPageTexts',
      summary: 'Get the default texts of the public pages',
      params: { language: z.string().describe(`One of ${languages.join(', ')}.`) },
      response: {
        description: 'The texts by key; `{name}` is a value.',
        data: z.object({ language: z.enum(languages), texts: z.record(z.string(), z.string()) }),
        example: { language: 'en', texts: { 'unsubscribe.title': 'Unsubscribe' } },
      },
      refusals: ['NOT_FOUND'],
      handle: ({ params: { language } }) =>
        isPageLanguage(language)
          ? { language, texts: PAGE_TEXTS[language] }
          : refuse('NOT_FOUND', `The public pages have no texts in ${language}: ${languages.join(', ')}`),
    }),
  ];
}

function present({ pages, updatedAt }: StoredPublicPages): z.output<typeof publicPages> {
  return { ...pages, ...withoutNulls({ updatedAt }) };
}
