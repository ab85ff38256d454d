import * as z from 'zod';
import { iso } from '../../core/clock.ts';
import { isRefusal } from '../../core/refusal.ts';
import { FINDING_STATUSES } from '../../doctor/finding.ts';
import type { Doctor } from '../../doctor/service.ts';
import { type Route, routesOf } from '../route.ts';

const route = routesOf({ tag: 'Installation', scope: 'operator' });

/** `/web-setup/doctor`: the checks of the installation, for its operator. */
export function doctorRoutes({ doctor }: { doctor: Pick<Doctor, 'examine'> }): Route[] {
  return [
    route('GET /web-setup/doctor', {
      operationId: 'getDoctorReport',
      summary: 'Check the installation',
      description:
        'Checks machine, network, DNS, domains, database and queue, as `postrider doctor` does, in up to 45 s. One run at a time; its result is returned for 30 s.',
      response: { description: 'The findings.', data: reportSchema, example: EXAMPLE },
      handle: async () => {
        const examined = await doctor.examine();
        if (isRefusal(examined)) return examined;
        const { checkedAt, ...report } = examined;
        return { checkedAt: iso(checkedAt), ...report };
      },
    }),
  ];
}

const status = z.enum(FINDING_STATUSES);

export const reportSchema = z
  .object({
    checkedAt: z.iso.datetime().describe('When the run began.'),
    durationMs: z.int(),
    counts: z.object({ failure: z.int(), warning: z.int(), unknown: z.int(), ok: z.int() }),
    findings: z.array(
      z.object({
        check: z.string().describe('Id of the check, such as `reverse-dns`.'),
        subject: z.string(),
        status,
        reason: z.string(),
        fix: z.string().optional().describe('The command, setting or DNS record that repairs it.'),
      }),
    ),
  })
  .meta({ id: 'DoctorReport' });

const EXAMPLE = {
  checkedAt: '2026-01-31T12:00:00.000Z',
  durationMs: 2140,
  counts: { failure: 1, warning: 0, unknown: 0, ok: 38 },
  findings: [
    {
      check: 'reverse-dns',
      subject: '192.0.2.25',
      status: 'failure',
      reason:
        'The address has no PTR record: large receivers refuse its mail. Set it at the provider of the address.',
      fix: '25.2.0.192.in-addr.arpa. 3600 IN PTR mail.example.net.',
    },
  ],
};
