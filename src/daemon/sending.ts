import type { AccountLimits } from '../accounts/limits.ts';
import { type AddressChecks, createAddressChecks } from '../audience/hygiene/checks.ts';
import { createHygieneRuns, type HygieneRuns } from '../audience/hygiene/runs.ts';
import { createSunset, type SunsetRules } from '../audience/hygiene/sunset.ts';
import { type BackgroundImports, createBackgroundImports } from '../audience/import/background.ts';
import type { Audience } from '../audience/service.ts';
import { type Campaigns, createCampaigns } from '../campaigns/campaigns.ts';
import { type CampaignRunner, createCampaignRunner } from '../campaigns/run.ts';
import { type CampaignSending, createCampaignSending } from '../campaigns/send.ts';
import { createSequenceRunner, type SequenceRunner } from '../campaigns/sequences/run.ts';
import { createSequences, type Sequences } from '../campaigns/sequences/sequences.ts';
import { programVersion } from '../config/version.ts';
import { HOUR } from '../core/clock.ts';
import type { Delivery } from '../delivery/delivery.ts';
import { simulatorDomain } from '../delivery/simulator.ts';
import type { Resolver } from '../dns/resolver.ts';
import type { OnSuppressionChange, Recorder } from '../events/record.ts';
import { type Acceptance, createAcceptance } from '../sending/accept.ts';
import { createAttachmentFiles } from '../sending/attachment-files.ts';
import { createIdempotencyKeys } from '../sending/idempotency.ts';
import { createOneClickNotice, type OneClickNotice } from '../sending/one-click.ts';
import { createPressure, type Pressure } from '../sending/pressure.ts';
import { createResend, type Resend } from '../sending/resend.ts';
import { createTemplateThreads, type TemplateThreads } from '../templates/thread/threads.ts';
import type { DaemonBase } from './storage.ts';

interface SendingParts {
  resolver: Resolver;
  recorder: Recorder;
  onSuppressionChange: OnSuppressionChange;
  limits: AccountLimits;
  audience: Audience;
  delivery: Delivery;
  /** `public.url` with its actual port. */
  publicUrl: string;
}

/** All that puts messages into the queue, and the imports, which also stop when the disk is nearly full. */
export interface DaemonSending {
  pressure: Pressure;
  addressChecks: AddressChecks;
  hygiene: HygieneRuns;
  sunset: SunsetRules;
  backgroundImports: BackgroundImports;
  oneClick: OneClickNotice;
  acceptance: Acceptance;
  resend: Resend;
  campaigns: Campaigns;
  campaignSending: CampaignSending;
  campaignRunner: CampaignRunner;
  sequences: Sequences;
  sequenceRunner: SequenceRunner;
  threads: TemplateThreads;
}

/** Starts the checks of queue and disk and the background imports, and creates the send path and the campaigns. */
export async function startSending(
  base: DaemonBase,
  { resolver, recorder, onSuppressionChange, limits, audience, delivery, publicUrl }: SendingParts,
): Promise<DaemonSending> {
  const { config, clock, expiry, log, tables, onStop } = base;
  const pressure = createPressure(base, {
    unrecorded: delivery.waits.unrecorded,
    storedRefusal: limits.storedRefusal,
  });
  await pressure.start();
  onStop(() => pressure.stop());
  const addressChecks = createAddressChecks({ resolver, monotonic: base.monotonic });
  const hygiene = createHygieneRuns(base, { checks: addressChecks, storageRefusal: pressure.storageRefusal });
  hygiene.start();
  onStop(() => hygiene.stop());
  const sunset = createSunset(base, { recorder, onSuppressionChange });
  sunset.start();
  onStop(() => sunset.stop());
  const backgroundImports = createBackgroundImports(base, {
    importer: audience.importer,
    checks: addressChecks,
    dataDir: config.data.dir,
    storageRefusal: pressure.storageRefusal,
  });
  backgroundImports.start();
  onStop(() => backgroundImports.stop());
  const intoQueue = {
    recorder,
    pressure,
    limits,
    simulatorDomain: simulatorDomain(config.hostname),
    expire: {
      get tx() {
        return config.delivery.retry.expireTransactional;
      },
      get mk() {
        return config.delivery.retry.expireMarketing;
      },
    },
    expiry,
    announce: delivery.announce,
  };
  const oneClick = createOneClickNotice({ publicUrl, log });
  const keys = createIdempotencyKeys({
    tables,
    now: clock.now,
    lifetimeMs: config.limits.idempotencyHours * HOUR,
  });
  const threads = createTemplateThreads(log);
  onStop(() => threads.stop());
  const attachmentFiles = createAttachmentFiles({
    resolver,
    userAgent: `Postrider/${programVersion()} (attachments)`,
    ...base.env.fileSources,
  });
  onStop(() => attachmentFiles.close());
  const acceptance = createAcceptance(base, {
    ...intoQueue,
    threads,
    attachmentFiles,
    leaseNow: delivery.leaseNow,
    accepted: delivery.accepted,
    publicUrl,
    oneClick,
    keys,
  });
  const campaignRunner = createCampaignRunner(base, {
    ...intoQueue,
    threads,
    guard: config,
    marketingLeft: delivery.marketingLeft,
  });
  onStop(() => campaignRunner.stop());
  const sequenceRunner = createSequenceRunner(base, { accept: acceptance.accept, pressure, limits });
  onStop(() => sequenceRunner.stop());
  return {
    pressure,
    addressChecks,
    hygiene,
    sunset,
    backgroundImports,
    oneClick,
    acceptance,
    resend: createResend(base, { ...intoQueue, keys }),
    campaigns: createCampaigns(base, limits.mayAdd.campaigns),
    campaignSending: createCampaignSending(base, {
      recorder,
      pressure,
      publicUrl,
      threads,
      onChange: campaignRunner.wake,
    }),
    campaignRunner,
    sequences: createSequences(base, {
      onChange: sequenceRunner.wake,
      obstacle: sequenceRunner.obstacle,
      threads,
    }),
    sequenceRunner,
    threads,
  };
}
