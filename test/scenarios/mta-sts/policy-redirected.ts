import { expect } from 'vitest';
import { selfSigned } from '../../support/certificates.ts';
import { policyText } from '../../support/policy-host.ts';
import { AUTHORITY } from '../support/environment.ts';
import { OPPORTUNISTIC } from '../support/published-policies.ts';
import type { Scenario } from '../support/scenario.ts';

const ELSEWHERE = 'policies.policy-redirected.example';

export default {
  // RFC 8461 §3.3
  title: 'does not follow a redirect of a policy host, and delivers without a policy',
  mtaSts: {
    policy: (_, response) => {
      response.writeHead(302, { location: `https://${ELSEWHERE}/.well-known/mta-sts.txt` }).end();
    },
  },
  hosts: { mx: { tls: selfSigned(['mx.example']) } },
  messages: { ada: OPPORTUNISTIC },
  play: async (run) => {
    const policies = run.env.policyHost();
    run.publish({ policies: { A: [policies.address] } });
    const policy = policyText('enforce', [`mx.${run.domain}`]);
    policies.handle(ELSEWHERE, AUTHORITY.issue([ELSEWHERE]), (_, response) => {
      response.writeHead(200, { 'content-type': 'text/plain' }).end(policy);
    });
    await run.sendAll();
  },
  verify: ({ env, domain }) => {
    const requests = env.policyHost().requests.filter((request) => request.includes(domain));
    expect(requests).toEqual([`mta-sts.${domain} /.well-known/mta-sts.txt`]);
  },
} satisfies Scenario;
