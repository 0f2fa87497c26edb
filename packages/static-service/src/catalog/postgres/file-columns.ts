/** The columns of a file, named as in `FileRow`. */
export const fileColumns = `path, name, digest, size, content_type "contentType", category,
  uploaded_by "uploadedBy", created_at "createdAt", updated_at "updatedAt"`
