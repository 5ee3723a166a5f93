import { z } from 'zod';

/** What a message says, as customers write it; placeholders (`{{name}}`) are allowed in every string that goes into the message. */
const link = z.string().min(1).max(2048).describe('An https URL that the provider can fetch');
const media = z.union([
  z.strictObject({ link }),
  z.strictObject({ id: z.string().min(1).max(256).describe('Id of a file uploaded to the provider; lives 30 days there') }),
]);
const documentMedia = z.union([
  z.strictObject({ link, filename: z.string().min(1).max(240).optional() }),
  z.strictObject({ id: z.string().min(1).max(256), filename: z.string().min(1).max(240).optional() }),
]);
const coordinate = (limit: number) => z.number().min(-limit).max(limit);

export const templateHeader = z.union([
  z.strictObject({ text: z.string().min(1).max(1024) }),
  z.strictObject({ image: media }),
  z.strictObject({ video: media }),
  z.strictObject({ document: documentMedia }),
  z.strictObject({
    location: z.strictObject({
      latitude: coordinate(90),
      longitude: coordinate(180),
      name: z.string().min(1).max(1000).optional(),
      address: z.string().min(1).max(1000).optional(),
    }),
  }),
]);

/** `index` is the button's position in the approved template, from 0. */
const buttonIndex = z.number().int().min(0).max(9);
export const templateButton = z.union([
  z.strictObject({
    index: buttonIndex,
    quickReply: z.string().min(1).max(256).describe('The payload that comes back, not the label'),
  }),
  z.strictObject({ index: buttonIndex, url: z.string().min(1).max(2000).describe('What the template appends to its URL') }),
  z.strictObject({ index: buttonIndex, copyCode: z.string().min(1).max(20) }),
]);

/** Positional templates take a list, named ones an object. */
export const templateBody = z.union([
  z.array(z.string().max(1024)).max(100),
  z.record(z.string().min(1).max(64), z.string().max(1024)),
]);

export const templateContent = z.strictObject({
  name: z
    .string()
    .regex(/^[a-z0-9_]{1,512}$/, 'lower-case letters, digits and underscores')
    .describe('Name of the approved template'),
  language: z.string().regex(/^[a-z]{2,3}(_[A-Za-z]{2,4})?$/, 'a language code such as en or en_US'),
  header: templateHeader.optional(),
  body: templateBody.optional(),
  buttons: z.array(templateButton).max(10).optional(),
  carousel: z
    .strictObject({
      cards: z
        .array(
          z.strictObject({
            header: templateHeader.optional(),
            body: templateBody.optional(),
            buttons: z.array(templateButton).max(2).optional(),
          }),
        )
        .min(2)
        .max(10),
    })
    .optional(),
});
export type TemplateContent = z.infer<typeof templateContent>;
export type TemplateHeader = z.infer<typeof templateHeader>;
export type TemplateButton = z.infer<typeof templateButton>;
export type TemplateBody = z.infer<typeof templateBody>;

export const messageContent = z.union([
  z.strictObject({ template: templateContent }),
  z.strictObject({ text: z.string().min(1).max(4096) }),
]);
export type MessageContent = z.infer<typeof messageContent>;
