import * as z from 'zod';
import { designSchema } from '../../mail/blocks/design.ts';
import type { Context } from '../../store/context.ts';
import { STARTER_LANGUAGES, starters } from '../../templates/starters/starters.ts';
import { type Route, routesOf } from '../route.ts';

const route = routesOf({ tag: 'Templates', scope: 'setup', permissions: ['read', 'read'] });

const starter = z
  .object({
    starterId: z.string(),
    name: z.string(),
    description: z.string(),
    type: z.enum(['transactional', 'marketing']),
    subject: z.string(),
    design: designSchema,
  })
  .meta({ id: 'TemplateStarter' });

/** `GET /web-setup/templates/starters`: designs to begin a template with. */
export function templateStarterRoutes({ tables }: Pick<Context, 'tables'>): Route[] {
  return [
    route('GET /web-setup/templates/starters', {
      operationId: 'listTemplateStarters',
      summary: 'List designs to begin a template with',
      description:
        'In the language and with the name of the company. To use one, create a template with its `name`, `type`, `subject` and `design`. Links to example.com are to be replaced.',
      query: z.object({
        language: z
          .string()
          .max(35)
          .optional()
          .describe(`${STARTER_LANGUAGES.join(', ')}, also with a region. Default, and for others: \`en\`.`),
      }),
      response: {
        description: 'The starters.',
        data: z.object({ starters: z.array(starter), count: z.int() }),
        example: {
          starters: [
            {
              starterId: 'welcome',
              name: 'Welcome',
              description: 'Greets a new subscriber and suggests three first steps.',
              type: 'marketing',
              subject: 'Welcome to Example Ltd',
              design: {
                version: 1,
                theme: {
                  accent: '#1f5c4d',
                  background: '#f2efe9',
                  text: '#24312d',
                  width: 600,
                  font: 'system',
                },
                blocks: [
                  {
                    id: 'title',
                    type: 'heading',
                    level: 1,
                    content: [{ type: 'text', text: 'Good to have you here' }],
                  },
                ],
              },
            },
          ],
          count: 1,
        },
      },
      handle: ({ caller: { accountId }, query: { language = '' } }) => {
        const wanted = language.split('-', 1)[0]?.toLowerCase();
        const known = STARTER_LANGUAGES.find((one) => one === wanted) ?? 'en';
        const found = starters(known, tables.accounts.get(accountId)?.company_name ?? null);
        return { starters: found, count: found.length };
      },
    }),
  ];
}
